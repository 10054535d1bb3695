from .content import page_content as page_content
from .content import run_figures as run_figures
