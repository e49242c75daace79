"""Coins of rows, from whatever stands in for uniforms."""

from torch import Tensor

from specref.torch_backend.randomness import ACCEPT, FINAL, Coins


class FromUniforms:
    """What has `uniforms` has `row_coins`, too."""

    def uniforms(self, seeds: Tensor, iteration: int, site: int, count: int) -> Tensor:
        raise NotImplementedError

    def row_coins(self, seeds: Tensor, iteration: int, lookahead: int) -> Coins:
        accept = self.uniforms(seeds, iteration, ACCEPT, lookahead)
        return Coins(accept, self.uniforms(seeds, iteration, FINAL, 1)[:, 0])
