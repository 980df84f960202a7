import math
import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_out, d_in))
        nn.init.trunc_normal_(self.weight, std=(2 / (d_in + d_out)) ** 0.5)

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class Embedding(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, d) * 0.02)

    def forward(self, ids):
        return self.weight[ids]


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight).to(dtype)


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, length, theta=10000.0):
        super().__init__()
        angle = torch.outer(torch.arange(length), 1 / theta ** (torch.arange(0, dim, 2) / dim))
        self.register_buffer("cache", torch.stack([angle.cos(), angle.sin()]), persistent=False)

    def forward(self, x):
        a, b = x[..., 0::2], x[..., 1::2]
        cos, sin = self.cache[:, : x.shape[-2]]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


def softmax(x, dim=-1):
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, float("-inf"))
    return torch.einsum("...qk,...kd->...qd", softmax(scores), v)


class Attention(nn.Module):
    def __init__(self, d, heads, rope):
        super().__init__()
        self.heads, self.rope = heads, rope
        self.q, self.k, self.v, self.o = (Linear(d, d) for _ in range(4))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (p(x).view(b, t, self.heads, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
        mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        y = scaled_dot_product_attention(self.rope(q), self.rope(k), v, mask)
        return self.o(y.transpose(1, 2).reshape(b, t, d))


class SwiGLU(nn.Module):
    def __init__(self, d, d_ff):
        super().__init__()
        self.w1, self.w2, self.w3 = Linear(d, d_ff), Linear(d_ff, d), Linear(d, d_ff)

    def forward(self, x):
        gate = self.w1(x)
        return self.w2(gate * torch.sigmoid(gate) * self.w3(x))


class Block(nn.Module):
    def __init__(self, d, heads, d_ff, rope):
        super().__init__()
        self.attn, self.ffn = Attention(d, heads, rope), SwiGLU(d, d_ff)
        self.ln1, self.ln2 = RMSNorm(d), RMSNorm(d)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class TransformerLM(nn.Module):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff):
        super().__init__()
        self.token_embeddings = Embedding(vocab_size, d_model)
        rope = RotaryEmbedding(d_model // num_heads, context_length)
        self.layers = nn.ModuleList([Block(d_model, num_heads, d_ff, rope) for _ in range(num_layers)])
        self.ln_final, self.lm_head = RMSNorm(d_model), Linear(d_model, vocab_size)

    def forward(self, ids):
        x = self.token_embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_final(x))


def cross_entropy(inputs, targets):
    inputs = inputs - inputs.amax(-1, keepdim=True)
    return (torch.log(torch.exp(inputs).sum(-1)) - inputs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)).mean()
