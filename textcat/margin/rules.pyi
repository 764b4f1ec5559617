"""The compiled rules, as type checkers and editors see them: formulas and sources are in rules.pyx."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

class Parameter(NamedTuple):
    name: str
    low: float = ...
    high: float = ...
    closed: str = ...
    default: float | Callable[..., float] | None = ...

    def check(self, value: float) -> float: ...
    def allows(self, value: object) -> bool: ...
    @property
    def range_in_words(self) -> str: ...

class Rule:
    """A member of the family; use one of its subclasses, or write one."""

    PARAMETERS: ClassVar[tuple[Parameter, ...]]
    CONSTANT: ClassVar[bool]

    def threshold(self, y: int, N: float = 0.0, t: float = 0.0, R: float = 1.0) -> float: ...
    def step(self, m: float, q: float, N: float = 0.0, t: float = 0.0, R: float = 1.0) -> tuple[float, float]: ...
    @property
    def is_initialized(self) -> bool: ...
    @property
    def parameters(self) -> dict[str, float]: ...

RULES: dict[str, type[Rule]]

class PA(Rule):
    """The perceptron algorithm (not the passive-aggressive one): update where a row is misclassified."""

    eta: float

    def __init__(self, eta: float = 1.0) -> None: ...

class PAM(Rule):
    """The perceptron algorithm with margins: update where a row's margin is not above τ."""

    tau: float
    eta: float

    def __init__(self, tau: float, eta: float = 1.0) -> None: ...

class PAUM(Rule):
    """The perceptron algorithm with uneven margins: one margin for positive rows, another for negative ones."""

    tau_neg: float
    tau_pos: float
    eta: float

    def __init__(self, tau_neg: float, tau_pos: float, eta: float = 1.0) -> None: ...

class TMargitron(Rule):
    """The t-margitron: the perceptron with a margin that is b times a power of the number of updates."""

    epsilon: float
    b: float

    def __init__(self, epsilon: float, b: float) -> None: ...

class LMargitron(Rule):
    """The ℓ-margitron: the perceptron with a margin that is b times a power of the length of the weight vector."""

    epsilon: float
    b: float

    def __init__(self, epsilon: float, b: float) -> None: ...

class MICRA(Rule):
    """The mistake-controlled rule algorithm, MICRA^{ε,ζ}: steps and margins are shrinking fractions of ‖a‖."""

    eta: float
    beta: float
    epsilon: float
    zeta: float

    def __init__(self, eta: float, beta: float, epsilon: float = 0.05, zeta: float = 0.9) -> None: ...

class CRAMMA(Rule):
    """The constant rate approximate maximum margin algorithm, CRAMMA^ε: steps are a constant fraction of ‖a‖."""

    eta: float
    beta: float
    epsilon: float

    def __init__(self, eta: float, beta: float, epsilon: float = 0.5) -> None: ...

class ALMA(Rule):
    """The approximate large margin algorithm, ALMA₂: steps and margins shrink as 1/√k; w stays in the unit ball."""

    alpha: float
    B: float
    C: float

    def __init__(self, alpha: float, B: float = ..., C: float = 1.4142135623730951) -> None: ...

class ROMMA(Rule):
    """The aggressive relaxed online maximum margin algorithm: an update gives its row the margin 1."""

    delta: float

    def __init__(self, delta: float) -> None: ...

class PDM(Rule):
    """The perceptron with dynamic margin: the margin asked for is a fraction of an upper bound on the largest one."""

    epsilon: float

    def __init__(self, epsilon: float) -> None: ...
