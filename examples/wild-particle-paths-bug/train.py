"""Bootstrap particle filter for a stochastic-volatility panel, with ancestral paths for the smoothing plot (fig. 4)."""
import math
import sys
import torch

torch.manual_seed(7)
DEV = "cuda"
N, D, T = 40_000, 64, 32


class ParticleFilter:
    def __init__(self, n, d, phi=0.97, sigma=0.2):
        self.phi, self.sigma, self.n = phi, sigma, n
        self.x = torch.randn(n, d, device=DEV) * sigma / math.sqrt(1 - phi**2)
        self.logw = torch.zeros(n, device=DEV)
        self.paths = self.x.unsqueeze(1)

    def predict(self):
        self.x = self.phi * self.x + self.sigma * torch.randn_like(self.x)

    def update(self, y):
        var = self.x.exp()
        self.logw = -0.5 * (self.x + y**2 / var).sum(1)
        return torch.logsumexp(self.logw, 0) - math.log(self.n)

    def resample(self):
        w = torch.softmax(self.logw, 0)
        idx = torch.multinomial(w, self.n, replacement=True)
        self.x = self.x[idx]
        self.paths = self.paths[idx]

    def record(self):
        self.paths = torch.cat((self.paths, self.x.unsqueeze(1)), dim=1)


def observations(t):
    x = torch.zeros(D, device=DEV)
    while t > 0:
        x = 0.97 * x + 0.2 * torch.randn_like(x)
        yield (0.5 * x).exp() * torch.randn_like(x)
        t -= 1


torch.cuda.memory._record_memory_history(stacks="python")
pf = ParticleFilter(N, D)
ll = 0.0
for y in observations(T):
    pf.predict()
    ll += pf.update(y).item()
    pf.resample()
    pf.record()
print(f"log-likelihood {ll:.1f}", tuple(pf.paths.shape))
torch.cuda.memory._dump_snapshot(sys.argv[1])
