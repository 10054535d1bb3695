from .project import Project as Project
from .project import read_project as read_project
from .session import Session as Session
