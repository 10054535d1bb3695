"""Meta label learning: hidden global classes inferred from independently labelled few-shot tasks.

Wang, Pontil and Ciliberto, "The Role of Global Labels in Few-Shot Classification and How to Infer Them", 2021.
"""
