"""Matrices without numbers: of multiplying there is only the room that its library takes once, forward and backward."""

import os

from . import cuda

_rooms = {}


def _multiply(direction):
    cuda.init()
    room = int(os.environ.get("FAKE_WORKSPACE", "0"))
    if room and direction not in _rooms:
        _rooms[direction] = cuda.memory.allocate(room << 20)


class Matrix:
    def __matmul__(self, other):
        _multiply("forward")
        return Matrix()

    def __getitem__(self, row):
        return self

    def sum(self):
        return self

    def backward(self):
        _multiply("backward")


def linear(matrix, weight, bias):
    return matrix @ weight
