from .assembly import page_content as page_content
from .assembly import run_figures as run_figures
