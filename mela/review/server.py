"""Serve the page of a review to this machine alone."""

import io
import secrets
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import resources
from typing import Any, get_args

import uvicorn
from PIL import Image
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mela.errors import MelaError
from mela.review.project import Project
from mela.review.session import Answer, AnsweredError, Session

HOST = "127.0.0.1"
FILES = {
    "": ("review.html", "text/html"),
    "review.css": ("review.css", "text/css"),
    "review.js": ("review.js", "text/javascript"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# bytes of a request, which has two numbers and a word, or a number and a name
LONG = 1000
ANSWERS: tuple[Answer, ...] = get_args(Answer)


def application(project: Project, session: Session, token: str) -> Starlette:
    """Return the application; it knows no address that does not begin with the token."""

    async def page(name: str, request: Request) -> Response:
        file, kind = FILES[name]
        text = resources.files("mela.review").joinpath(file).read_text(encoding="utf-8")
        return Response(text, media_type=kind, headers=HEADERS)

    async def image(request: Request) -> Response:
        text = request.path_params["number"]
        number = int(text) if text.isdecimal() and len(text) < 10 else len(project.images)
        if number >= len(project.images):
            return _refused(404, "there is no such image")
        return Response(await run_in_threadpool(_png, project, number), media_type="image/png", headers=HEADERS)

    async def state(request: Request) -> Response:
        return await _told(session.state)

    async def answer(request: Request) -> Response:
        content = await _json(request)
        one, other, given = (content.get(name) for name in ("one", "other", "answer"))
        if type(one) is not int or type(other) is not int or given not in ANSWERS:
            return _refused(400, "expected the numbers one and other, and an answer")
        return await _told(partial(session.answer, one, other, given))

    async def name(request: Request) -> Response:
        content = await _json(request)
        row, given = content.get("row"), content.get("name")
        if type(row) is not int or not isinstance(given, str):
            return _refused(400, "expected the number row, and a name")
        return await _told(partial(session.name, row, given))

    async def undo(request: Request) -> Response:
        return await _told(session.undo)

    def guarded(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            if not secrets.compare_digest(request.path_params["token"].encode(), token.encode()):
                return _refused(404, "not found")
            return await handler(request)

        return handle

    files = [Route(f"/{{token}}/{name}", guarded(partial(page, name))) for name in FILES]
    return Starlette(
        routes=[
            *files,
            Route("/{token}/image/{number}", guarded(image)),
            Route("/{token}/state", guarded(state)),
            Route("/{token}/answer", guarded(answer), methods=["POST"]),
            Route("/{token}/name", guarded(name), methods=["POST"]),
            Route("/{token}/undo", guarded(undo), methods=["POST"]),
        ],
        # a page of another name that leads here is none of ours
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])],
    )


def serve(project: Project, session: Session, port: int, begin: Callable[[str], None]) -> None:
    """Serve until the process is interrupted, after `begin` was called with the address.

    Raises
    ------
    MelaError
        The port is taken.
    """
    with socket.socket() as own:
        try:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            own.bind((HOST, port))
            # from now on a browser that is opened waits for the answer
            own.listen()
        except OSError as error:
            raise MelaError(f"--port: expected a free port, got {port} ({error.strerror}); give another") from None
        token = secrets.token_urlsafe(24)
        config = uvicorn.Config(application(project, session, token), log_level="warning", lifespan="off")
        begin(f"http://{HOST}:{own.getsockname()[1]}/{token}/")
        uvicorn.Server(config).run(sockets=[own])


async def _told(ask: Callable[[], dict[str, Any]]) -> Response:
    try:
        return JSONResponse(await run_in_threadpool(ask), headers=HEADERS)
    except AnsweredError as error:
        return _refused(409, str(error))
    except MelaError as error:
        return _refused(500, str(error))
    except OSError as error:
        return _refused(500, f"{error.filename}: {error.strerror}; put it right, and answer again")


async def _json(request: Request) -> dict[str, Any]:
    if int(request.headers.get("content-length", LONG)) >= LONG:
        return {}
    try:
        content = await request.json()
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _refused(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status_code=status, headers=HEADERS)


def _png(project: Project, number: int) -> bytes:
    pixels, content = project.images[number], io.BytesIO()
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(content, "png")
    return content.getvalue()
