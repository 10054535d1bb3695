"""Check the shape of what methods make: another one may train, and test, as something else."""

from typing import Any

from torch import Tensor

from mela.errors import MelaError


def require_tensor(
    maker: object, part: str, found: object, axes: str, shape: tuple[int, ...], *, learned: bool = False
) -> Tensor:
    """Return what a method has made if it is the expected tensor.

    Parameters
    ----------
    maker : object
        Named in the error by its class.
    part : str
        Part of the method, such as ``logits``.
    found : object
    axes : str
        Expected axes, as the error says it.
    shape : tuple of int
    learned : bool
        Whether it needs a gradient.

    Raises
    ------
    MelaError
        It is no tensor, has another shape, or lacks a needed gradient.
    """
    where = f"{type(maker).__name__}.{part}: expected {axes}"
    if not isinstance(found, Tensor) or found.shape != shape:
        raise MelaError(f"{where}, a tensor of {tuple(shape)}, got {described(found)}; correct the method")
    if learned and not found.requires_grad:
        raise MelaError(f"{where}, with a gradient, got {described(found)} without; correct the method")
    return found


def require_each(maker: object, found: object, n_images: int) -> Tensor:
    """Return what `forward` has made if it has one row for each image.

    Raises
    ------
    MelaError
        It is no tensor, or has another number of rows.
    """
    if isinstance(found, Tensor) and found.ndim and len(found) == n_images:
        return found
    raise MelaError(
        f"{type(maker).__name__}.forward: expected a tensor with a row for each of {n_images} images, got "
        f"{described(found)}; correct the method"
    )


def described(found: object) -> str:
    """Describe an object in an error."""
    return f"a tensor of {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__


def pair_of(maker: object, part: str, found: object, axes: str) -> tuple[Any, Any]:
    """Return the two things that a method is expected to make.

    Raises
    ------
    MelaError
        They are not two.
    """
    if not isinstance(found, tuple) or len(found) != 2:
        what = ", ".join(map(described, found)) if isinstance(found, tuple) else described(found)
        raise MelaError(f"{type(maker).__name__}.{part}: expected {axes}, got {what or 'nothing'}; correct the method")
    return found
