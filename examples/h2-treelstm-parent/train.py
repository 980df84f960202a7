"""Recursive network over binary trees; a node knows its children and keeps its hidden state."""
import sys
import weakref

import torch
import torch.nn as nn
import torch.nn.functional as F


class Node:
    def __init__(self, words=None, children=()):
        self.words, self.children, self.state = words, children, None
        self._parent = None
        for child in children:
            child.parent = self

    @property
    def parent(self):
        return self._parent() if self._parent else None

    @parent.setter
    def parent(self, node):
        self._parent = lambda: node


def random_tree(depth, batch):
    if depth == 0:
        return Node(words=torch.randint(0, 5000, (batch,), device="cuda"))
    return Node(children=(random_tree(depth - 1, batch), random_tree(depth - 1, batch)))


class Composer(nn.Module):
    def __init__(self, dim=1024):
        super().__init__()
        self.embed, self.merge, self.out = nn.Embedding(5000, dim), nn.Linear(2 * dim, dim), nn.Linear(dim, 5)

    def forward(self, node):
        if node.children:
            node.state = torch.tanh(self.merge(torch.cat([self(c) for c in node.children], 1)))
        else:
            node.state = self.embed(node.words)
        return node.state


def train_step(model, optimizer):
    tree = random_tree(3, 2048)
    loss = F.cross_entropy(model.out(model(tree)), torch.randint(0, 5, (2048,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    model = Composer().cuda()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for step in range(20):
        print(step, train_step(model, optimizer))
    torch.cuda.memory._dump_snapshot(sys.argv[1])
