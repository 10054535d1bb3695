from .accuracy import evaluate_model as evaluate_model
from .accuracy import evaluate_tasks as evaluate_tasks
from .heads import HEADS as HEADS
from .intervals import Interval as Interval
from .label_scores import majority_accuracy as majority_accuracy
