"""Write numbers of things in sentences."""

PLURALS = {"class": "classes"}


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun: "1 image", "2 images"."""
    return f"{number} {noun if number == 1 else PLURALS.get(noun, f'{noun}s')}"


def images_are(number: int) -> str:
    """Return "1 image is", "2 images are"."""
    return f"{count_of(number, 'image')} {'is' if number == 1 else 'are'}"
