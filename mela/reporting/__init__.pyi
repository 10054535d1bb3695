from .metrics import read_metrics as read_metrics
from .published import SYSTEMS as SYSTEMS
from .summary import accuracies as accuracies
