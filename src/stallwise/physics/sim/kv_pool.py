"""The pool of KV blocks. Growth of a whole decoding batch over many tokens is counted without visiting its requests.

At every tick each decoding request stores one more token. It needs a new block when its length is a multiple of the
block; requests are therefore kept by the phase (length - tick) mod block, and one look at the phases tells how many
blocks any number of ticks will take.
"""

from __future__ import annotations

from collections import OrderedDict


class KvPool:
    """Blocks in use by requests and by cached prefixes; what is used and free always adds up to the total."""

    def __init__(self, blocks: int, block_tokens: int = 16) -> None:
        self.total, self.free, self.block = blocks, blocks, block_tokens
        self.phases = [0] * block_tokens
        self.decoding = 0
        self.prefixes: OrderedDict[int, int] = OrderedDict()  # prefix -> blocks, oldest use first

    @property
    def used(self) -> int:
        """Blocks taken."""
        return self.total - self.free

    def blocks_of(self, tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-tokens // self.block)

    def take(self, blocks: int) -> bool:
        """Takes blocks, evicting old prefixes if needed; False and nothing taken if there are not enough."""
        while self.free < blocks and self.prefixes:
            _, freed = self.prefixes.popitem(last=False)
            self.free += freed
        if self.free < blocks:
            return False
        self.free -= blocks
        return True

    def give(self, blocks: int) -> None:
        """Gives blocks back."""
        self.free += blocks
        assert self.free <= self.total

    def join(self, context: int, tick: int) -> None:
        """A request of this length starts to decode."""
        self.phases[(context - tick) % self.block] += 1
        self.decoding += 1

    def leave(self, start_context: int, start_tick: int) -> None:
        """It stops."""
        self.phases[(start_context - start_tick) % self.block] -= 1
        self.decoding -= 1

    def growth(self, tick: int, ticks: int) -> int:
        """Blocks that the decoding requests will need over the next ticks."""
        cycles, rest = divmod(ticks, self.block)
        return cycles * self.decoding + sum(self.phases[-(tick + i) % self.block] for i in range(rest))

    def room(self, tick: int, ticks: int) -> int:
        """Ticks until blocks run out, at most so many. Cached prefixes count as room."""
        if not self.decoding:
            return ticks
        left = self.free + sum(self.prefixes.values()) if self.prefixes else self.free
        cycles = left // self.decoding
        if cycles * self.block >= ticks:
            return ticks
        left -= cycles * self.decoding
        found = cycles * self.block
        while found < ticks:
            need = self.phases[-(tick + found) % self.block]
            if need > left:
                break
            left -= need
            found += 1
        return found

    def grow(self, tick: int, ticks: int) -> None:
        """Stores the tokens of these ticks."""
        taken = self.take(self.growth(tick, ticks))
        assert taken, "room() said there was room"

    # --- shared prefixes ---

    def match(self, prefix: int) -> int:
        """Tokens of this prefix that are cached."""
        blocks = self.prefixes.get(prefix, 0)
        if blocks:
            self.prefixes.move_to_end(prefix)
        return blocks * self.block

    def keep(self, prefix: int, tokens: int) -> None:
        """Caches the whole blocks of a prefix, if there is room for them beside the requests."""
        blocks = tokens // self.block
        if blocks and prefix not in self.prefixes and self.free > blocks:
            self.free -= blocks
            self.prefixes[prefix] = blocks
