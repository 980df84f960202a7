"""Sliding-window GP bandit: one hyper-parameter step and one batch of queries per round."""
import sys

import gpytorch
import torch

WINDOW, POOL, DIM, QUERIES = 1200, 2000, 6, 4


class Surrogate(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=DIM))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def objective(x):
    return torch.sin(3 * x).sum(-1) + 0.1 * torch.randn(x.shape[0], device=x.device)


class Bandit:
    def __init__(self):
        self.x = torch.rand(WINDOW, DIM, device="cuda")
        self.y = objective(self.x)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda()
        self.model = Surrogate(self.x, self.y, self.likelihood).cuda()
        self.mll = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
        self.log = []

    def fit_step(self):
        self.model.train()
        self.likelihood.train()
        self.optimizer.zero_grad()
        loss = -self.mll(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def acquire(self):
        self.model.eval()
        self.likelihood.eval()
        candidates = torch.rand(POOL, DIM, device="cuda")
        posterior = self.model(candidates)
        ucb = posterior.mean + 2.0 * posterior.variance.clamp_min(1e-8).sqrt()
        top = ucb.topk(QUERIES)
        self.log.append({"best_ucb": top.values[0], "best_y": self.y.max().item()})
        return candidates[top.indices]

    def tell(self, queries):
        self.x = torch.cat([self.x[QUERIES:], queries])
        self.y = torch.cat([self.y[QUERIES:], objective(queries)])
        self.model.set_train_data(self.x, self.y, strict=False)


def main(out):
    torch.manual_seed(0)
    torch.cuda.memory._record_memory_history(max_entries=150000, stacks="python")
    bandit = Bandit()
    with gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False):
        for rnd in range(14):
            loss = bandit.fit_step()
            bandit.tell(bandit.acquire())
            print(rnd, round(loss, 4), round(float(bandit.log[-1]["best_ucb"]), 4))
    torch.cuda.memory._dump_snapshot(out)


if __name__ == "__main__":
    main(sys.argv[1])
