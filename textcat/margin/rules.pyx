# cython: embedsignature=True
"""The family of margin rules: when a learner updates, and by how much.

Every learner of the family does ``w ← shrink·w + grow·y·x`` on a row with ``m ≤ threshold``. The threshold, shrink and grow
are functions of scalars alone:

===  =====================================================================================
m    functional margin ``y·f(x)`` of the row
q    squared length of the row with its augmented and private coordinates, ``‖x‖² + ρ² + λ``
N    squared length of the whole weight vector (augmented and private coordinates included)
t    number of updates so far
R    square root of the largest q
===  =====================================================================================

A rule is a class below and two small functions, its threshold and its step. Its formula stands nowhere else: the compiled
loops, with weights or with kernels, call these functions. `RULES` has all rules by name. Rules are not estimators:
`textcat.PAUM` is a classifier that trains by the rule `textcat.rules.PAUM`.

A subclass of `Rule` in Python, with methods `threshold` and `step`, is a rule, too. The same loops call its methods, which
takes some twenty times as long: docs/how-to/add-a-rule.md.
"""

from inspect import Parameter as Argument
from inspect import Signature
from numbers import Real
from typing import Any, NamedTuple

from libc.math cimport INFINITY, fmax, pow, sqrt
from libc.string cimport memcpy


class Parameter(NamedTuple):
    """A parameter of a rule: its name, the interval of its values, and its default.

    Values must be finite even if the interval has no end. A default may be a function of the parameters before it.
    """

    name: str
    low: float = -INFINITY
    high: float = INFINITY
    closed: str = "neither"  # which end belongs to the interval: "left", "right", "both" or "neither"
    default: Any = None

    def check(self, value: float) -> float:
        """Return the value as a float, or raise ValueError if it lies outside the interval."""
        number = float(value)
        if not self.allows(number):
            raise ValueError(f"{self.name} must be {self.range_in_words}, got {number:g}")
        return number

    def allows(self, value: object) -> bool:
        """Return whether a value is a number in the interval."""
        if not isinstance(value, Real) or not -INFINITY < value < INFINITY:
            return False
        above = value >= self.low if self.closed in ("left", "both") else value > self.low
        below = value <= self.high if self.closed in ("right", "both") else value < self.high
        return bool(above and below)

    @property
    def range_in_words(self) -> str:
        bounds = [] if self.low > -INFINITY and self.high < INFINITY else ["finite"]
        if self.low > -INFINITY:
            bounds.append(f"{'at least' if self.closed in ('left', 'both') else 'greater than'} {self.low:g}")
        if self.high < INFINITY:
            bounds.append(f"{'at most' if self.closed in ('right', 'both') else 'less than'} {self.high:g}")
        return " and ".join(bounds)


ETA = Parameter("eta", low=0, default=1.0)
FRACTION = {"low": 0, "high": 1, "closed": "right"}  # of the largest possible margin that may be given up


def _is_overridden(kind, name):
    """Return whether a rule's class, or a base of it that is written in Python, defines the method of this name."""
    return any(name in vars(cls) for cls in kind.__mro__[: kind.__mro__.index(Rule)] if cls not in RULES.values())


class _SignatureOfParameters:
    """Descriptor that makes a rule's ``__signature__`` of the parameters of the rule's class."""

    def __get__(self, rule, cls):
        defaults = [Argument.empty if each.default is None else each.default for each in cls.PARAMETERS]
        named = zip(cls.PARAMETERS, defaults)
        return Signature([Argument(each.name, Argument.POSITIONAL_OR_KEYWORD, default=default) for each, default in named])


cdef double _no_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return -INFINITY

cdef void _no_step(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow) noexcept nogil:
    pass

cdef Rule _python_rule(const double *p):
    # A rule in Python has its own address where others have their parameters.
    cdef void *rule = NULL
    memcpy(&rule, p, sizeof(void *))
    return <Rule>rule

cdef double _python_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    with gil:
        rule = _python_rule(p)
        try:
            return rule.threshold(y, N, t, R)
        except BaseException as error:  # training goes on without updates, until the loop returns and raises it
            rule.failure = error
            return -INFINITY

cdef void _python_step(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow) noexcept nogil:
    with gil:
        rule = _python_rule(p)
        try:
            shrink[0], grow[0] = rule.step(m, q, N, t, R)
        except BaseException as error:
            rule.failure = error
            shrink[0], grow[0] = 1, 0


cdef class Rule:
    """A margin rule: the base class of all rules; use one of its subclasses, or write one.

    Rules are values: equal when their parameters are equal, hashable, picklable. The constructor takes the parameters
    in their order or by name; the rule has them as attributes.

    A subclass in Python declares its `PARAMETERS` and defines both `threshold` and `step`, as functions of their arguments
    and of the parameters alone. It trains exactly as if it were compiled.

    Attributes
    ----------
    PARAMETERS : tuple of Parameter
    CONSTANT : bool
        Whether the threshold depends on the label alone, and all steps are the same.
    """

    PARAMETERS = ()
    CONSTANT = False
    __signature__ = _SignatureOfParameters()

    def __cinit__(self, *args, **kwargs):
        # An object made past its __init__ must not send the compiled loop to address 0.
        self.formula.threshold, self.formula.step = _no_threshold, _no_step

    def __init__(self, *args, **kwargs):
        kind = type(self)
        if kind is Rule:
            raise TypeError(f"Rule is the whole family; use one of its members: {', '.join(RULES)}")
        cdef bint in_python = kind not in RULES.values()
        cdef void *address = <void *>self
        if in_python and not (_is_overridden(kind, "threshold") and _is_overridden(kind, "step")):
            raise TypeError(f"{kind.__name__} is a rule in Python, so it must define both threshold and step")
        arguments = self.__signature__.bind(*args, **kwargs).arguments
        self.values = {}
        for parameter in self.PARAMETERS:
            value = arguments.get(parameter.name, parameter.default)
            self.values[parameter.name] = parameter.check(value(**self.values) if callable(value) else value)
        if in_python:
            self.formula.threshold, self.formula.step, self.formula.uneven = _python_threshold, _python_step, True
            self.formula.constant = self.CONSTANT
            memcpy(self.formula.p, &address, sizeof(void *))
        else:
            for place, value in enumerate(self.values.values()):
                self.formula.p[place] = value
            self.use_formula()

    cdef void use_formula(self):  # sets the functions of the formula, and what the loop may rely on
        pass

    cdef int raise_failure(self) except -1:  # that of a method in Python, which the compiled loop has called
        error, self.failure = self.failure, None
        if error is not None:
            raise error
        return 0

    def threshold(self, int y, double N=0.0, double t=0.0, double R=1.0):
        """Return the margin at or below which a row of label y, +1 or -1, causes an update.

        N, t and R are explained in the docstring of `textcat.rules`.
        """
        return self.formula.threshold(self.formula.p, y, N, t, R)

    def step(self, double m, double q, double N=0.0, double t=0.0, double R=1.0):
        """Return ``(shrink, grow)``: an update sets ``w ← shrink·w + grow·y·x``.

        The arguments are explained in the docstring of `textcat.rules`.
        """
        cdef double shrink = 1.0, grow = 0.0
        self.formula.step(self.formula.p, m, q, N, t, R, &shrink, &grow)
        return shrink, grow

    @property
    def is_initialized(self):
        """Whether the constructor has been called: without it, a rule never updates."""
        return self.values is not None

    @property
    def parameters(self):
        """The parameters by name, as the constructor takes them."""
        return dict(self.values or {})

    def __getattr__(self, name):
        try:
            return self.values[name]
        except (KeyError, TypeError):  # TypeError: an object made past its __init__
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}") from None

    def __eq__(self, other):
        return type(self) is type(other) and self.parameters == other.parameters

    def __hash__(self):
        return hash((type(self), *self.parameters.values()))

    def __reduce__(self):
        return type(self), tuple(self.parameters.values())

    def __repr__(self):
        settings = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({settings})"


cdef double _zero_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return 0

cdef void _pa_step(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow) noexcept nogil:
    grow[0] = p[0]

cdef class PA(Rule):
    """The perceptron algorithm (not the passive-aggressive one): update where a row is misclassified.

    Update ``w ← w + η·y·x`` where ``m ≤ 0``.

    Parameters
    ----------
    eta : float > 0
        Learning rate η. It scales the solution and changes nothing else.

    Notes
    -----
    At most ``4(R/Γ)²`` updates on rows separable with margin Γ by a unit vector with ``|b| ≤ R``.

    Source: Rosenblatt 1958; Novikoff, "On convergence proofs on perceptrons", 1962.
    """

    PARAMETERS = (ETA,)
    CONSTANT = True

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _zero_threshold, _pa_step
        self.formula.constant = True


cdef double _pam_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return p[0]

cdef void _pam_step(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow) noexcept nogil:
    grow[0] = p[1]

cdef class PAM(Rule):
    """The perceptron algorithm with margins: update where a row's margin is not above τ.

    Update ``w ← w + η·y·x`` where ``m ≤ τ``.

    Parameters
    ----------
    tau : float
        Margin asked of every document, τ; the MICRA and margitron papers call it b.
    eta : float > 0
        Learning rate η: the larger, the less the margin asks for.

    Notes
    -----
    The solution's directional margin is at least ``τ / (2τ + ηR²)`` of the largest possible one.

    Source: Krauth and Mézard, "Learning algorithms with optimal stability in neural networks", J. Phys. A 20, 1987.
    """

    PARAMETERS = (Parameter("tau"), ETA)
    CONSTANT = True

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _pam_threshold, _pam_step
        self.formula.constant = True


cdef double _paum_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return p[1] if y > 0 else p[0]

cdef void _paum_step(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow) noexcept nogil:
    grow[0] = p[2]

cdef class PAUM(Rule):
    """The perceptron algorithm with uneven margins: one margin for positive rows, another for negative ones.

    Update ``w ← w + η·y·x`` where ``m ≤ τ_y``, with ``τ_y = tau_pos`` for positive rows and ``tau_neg`` for negative ones.

    Parameters
    ----------
    tau_neg : float
        Margin asked of documents without the topic; below 0, some errors are left as they are.
    tau_pos : float
        Margin asked of documents with the topic.
    eta : float > 0
        Learning rate η: the larger, the less the margins ask for.

    Notes
    -----
    On rows separable with margin Γ by a unit vector with ``|b| ≤ R`` there are at most
    ``4((R/Γ)² + max(τ₋, τ₊)/(ηΓ²))`` updates.

    Source: Li, Zaragoza, Herbrich, Shawe-Taylor and Kandola, "The Perceptron Algorithm with Uneven Margins", ICML 2002,
    Algorithm 1 and Theorem 2.1.
    """

    PARAMETERS = (Parameter("tau_neg"), Parameter("tau_pos"), ETA)
    CONSTANT = True

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _paum_threshold, _paum_step
        self.formula.constant = self.formula.uneven = True


cdef void _unit_step(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow) noexcept nogil:
    grow[0] = 1

cdef double _t_margitron_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return p[1] * pow(t, 1 - p[0]) if t > 0 else 0

cdef class TMargitron(Rule):
    """The t-margitron: the perceptron with a margin that is b times a power of the number of updates.

    Update ``w ← w + y·x`` where ``m ≤ b·t^(1-ε)``, or ``m ≤ 0`` at ``t = 0``; t is the number of updates so far.

    Parameters
    ----------
    epsilon : float in (0, 2)
        How slowly the margin asked for grows, ε; at 1 it is always b, as with PAM, and above 1 it falls.
    b : float > 0
        Size of the margin asked for: a larger b gives a margin closer to the guarantee, and takes more updates.

    Notes
    -----
    The fraction of the largest directional margin that is reached is at least
    ``(1 - ε/2) / (1 + (1 - ε/2)(R²/b)·t^-(1-ε))`` with the final t; it tends to ``1 - ε/2`` with b.

    Source: Panagiotakopoulos and Tsampouka, "The Margitron: A Generalised Perceptron with Margin", 2008, equation 3.
    """

    PARAMETERS = (Parameter("epsilon", low=0, high=2), Parameter("b", low=0))

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _t_margitron_threshold, _unit_step


cdef double _l_margitron_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return p[1] * pow(fmax(N, 0), (1 - p[0]) / 2) if t > 0 else 0  # rounding may leave N just below 0

cdef class LMargitron(Rule):
    """The ℓ-margitron: the perceptron with a margin that is b times a power of the length of the weight vector.

    Update ``w ← w + y·x`` where ``m ≤ b·‖a‖^(1-ε) = b·N^((1-ε)/2)``, or ``m ≤ 0`` before the first update.

    Parameters
    ----------
    epsilon : float > 0
        How slowly the margin asked for grows, ε; at 1 it is always b, as with PAM, and above 1 it falls.
    b : float > 0
        Size of the margin asked for: a larger b gives a margin closer to the guarantee, and takes more updates.

    Notes
    -----
    The guaranteed fraction of the largest directional margin tends to ``1/(1 + ε)`` with b.

    Source: Panagiotakopoulos and Tsampouka, "The Margitron: A Generalised Perceptron with Margin", 2008, equation 4.
    """

    PARAMETERS = (Parameter("epsilon", low=0), Parameter("b", low=0))

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _l_margitron_threshold, _unit_step


cdef void _keep_in_range(double N, double *shrink, double *grow) noexcept nogil:
    # MICRA's and CRAMMA's vectors grow without bound, and only their direction counts. A power of two changes no bit of it.
    if N > 2.0 ** 40:
        shrink[0] = 2.0 ** -20
        grow[0] *= 2.0 ** -20

cdef double _micra_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return sqrt(N) * p[1] * pow(t, -p[2]) if N > 0 else INFINITY

cdef void _micra_step(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow) noexcept nogil:
    grow[0] = sqrt(N) * (p[0] / R) * pow(t, -p[3]) if N > 0 else 1
    _keep_in_range(N, shrink, grow)

cdef class MICRA(Rule):
    """The mistake-controlled rule algorithm, MICRA^{ε,ζ}: steps and margins are shrinking fractions of ‖a‖.

    The first row makes ``a = y·x``, ``t = 1``. From then on, update ``a ← a + √N·(η/R)·t^(-ζ)·y·x`` where
    ``m ≤ √N·β·t^(-ε)``. The vector is divided by 2²⁰ whenever it is longer than that, which changes nothing else.

    Parameters
    ----------
    eta : float > 0
        Learning rate η, as a multiple of ``1/R``, R being the length of the longest row.
    beta : float > 0
        The directional margin β asked of every document after the first update; the papers give β/R.
    epsilon : float > 0
        How fast the margin asked for falls with the number of updates, ε.
    zeta : float >= 0
        How fast the steps become smaller with the number of updates, ζ.

    Notes
    -----
    Converges where ``ζ ≤ 1``. With ``η = η₀·(β/R)^(-δ)`` and ``0 < εδ + ζ < 1`` the directional margin reached tends to
    the largest possible one with β/R. The paper's number of updates leaves the first row out: it is ``t - 1``.

    Source: Tsampouka and Shawe-Taylor, "Approximate Maximum Margin Algorithms with Rules Controlled by the Number of
    Mistakes", ICML 2007, equations 5 to 7 and theorem 1.
    """

    PARAMETERS = (
        Parameter("eta", low=0), Parameter("beta", low=0), Parameter("epsilon", low=0, default=0.05),
        Parameter("zeta", low=0, closed="left", default=0.9),
    )

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _micra_threshold, _micra_step


cdef class CRAMMA(Rule):
    """The constant rate approximate maximum margin algorithm, CRAMMA^ε: steps are a constant fraction of ‖a‖.

    That is MICRA with ζ = 0: an update adds the row times a constant (η/R) times ‖a‖, the length of the weight vector.

    The first row makes ``a = y·x``, ``t = 1``. From then on, update ``a ← a + √N·(η/R)·y·x`` where ``m ≤ √N·β·t^(-ε)``.

    Parameters
    ----------
    eta : float > 0
        Learning rate η, as a multiple of ``1/R``, R being the length of the longest row.
    beta : float > 0
        The directional margin β asked of every document after the first update; the papers give β/R.
    epsilon : float > 0
        How fast the margin asked for falls with the number of updates, ε.

    Notes
    -----
    Source: Tsampouka and Shawe-Taylor, "Constant Rate Approximate Maximum Margin Algorithms", ECML 2006.
    """

    PARAMETERS = (Parameter("eta", low=0), Parameter("beta", low=0), Parameter("epsilon", low=0, default=0.5))

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _micra_threshold, _micra_step  # p[3], its ζ, is 0


cdef double _alma_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return R * (1 - p[0]) * p[1] / sqrt(t + 1)

cdef void _alma_step(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow) noexcept nogil:
    cdef double length2
    if R == 0:
        return  # no row has a coordinate, so there is nothing to learn from
    grow[0] = p[2] / sqrt(t + 1) / R
    length2 = N + grow[0] * (2 * m + grow[0] * q)
    if length2 > 1:
        shrink[0] = 1 / sqrt(length2)
        grow[0] *= shrink[0]

cdef class ALMA(Rule):
    """The approximate large margin algorithm, ALMA₂: steps and margins shrink as 1/√k; w stays in the unit ball.

    Rows are scaled to a largest length of 1, ``x/R``. With ``k = t + 1``, update ``w ← w + (C/√k)·y·x/R`` where
    ``m/R ≤ (1 - α)·B/√k``, and divide w by its length if that is above 1.

    Parameters
    ----------
    alpha : float in (0, 1]
        The directional margin reached is at least ``1 - α`` of the largest possible one.
    B : float > 0
        Size of the margins asked for; √8/α where not given, as in the theorem. Gentile's experiments have 1/α.
    C : float > 0
        Size of the steps; √2 in the theorem.

    Notes
    -----
    Source: Gentile, "A New Approximate Maximal Margin Classification Algorithm", JMLR 2, 2001, figure 1 and theorem 3.
    """

    PARAMETERS = (
        Parameter("alpha", **FRACTION), Parameter("B", low=0, default=lambda alpha: sqrt(8) / alpha),
        Parameter("C", low=0, default=sqrt(2)),
    )

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _alma_threshold, _alma_step


cdef double _romma_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return 1 - p[0] if N > 0 else INFINITY

cdef void _romma_step(const double *p, double m, double q, double N, double t, double R, double *shrink, double *grow) noexcept nogil:
    if q == 0:
        return  # a row without coordinates cannot be given a margin
    if m >= q * N:  # the row alone asks for a longer vector than all before it; so does the first one, with N = 0
        shrink[0] = 0
        grow[0] = 1 / q
    else:
        shrink[0] = (q * N - m) / (q * N - m * m)
        grow[0] = N * (1 - m) / (q * N - m * m)

cdef class ROMMA(Rule):
    """The aggressive relaxed online maximum margin algorithm: an update gives its row the margin 1.

    The first row makes ``w = y·x/q``. From then on, where ``m ≤ 1 - δ``, w becomes the shortest ``v`` with
    ``y⟨v, x⟩ ≥ 1`` and ``⟨v, w⟩ ≥ N``: update ``w ← ((qN - m)·w + N(1 - m)·y·x) / (qN - m²)``, or where ``m ≥ qN``
    ``w ← y·x/q``, the shortest vector that meets the first condition, as it then meets the second, too.

    Parameters
    ----------
    delta : float in (0, 1]
        Training ends with all margins above ``1 - δ``; their directional margin is at least ``1 - δ`` of the largest
        possible one.

    Notes
    -----
    The paper updates where ``m < 1 - δ``; here a row on the threshold causes an update, too, as with the other rules.

    Source: Li and Long, "The relaxed online maximum margin algorithm", Machine Learning 46, 2002.
    """

    PARAMETERS = (Parameter("delta", **FRACTION),)

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _romma_threshold, _romma_step
        self.formula.anew = True  # its steps divide by qN - m², which what the recurrence rounds away would disturb


cdef double _pdm_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return (1 - p[0]) * N / t if t > 0 else INFINITY

cdef class PDM(Rule):
    """The perceptron with dynamic margin: the margin asked for is a fraction of an upper bound on the largest one.

    Update ``w ← w + y·x`` where ``m ≤ (1 - ε)·N/t``, and always at ``t = 0``. As the largest possible directional margin
    γ_d is at most ``√N/t``, a row without an update has at least the directional margin ``(1 - ε)·γ_d``.

    Parameters
    ----------
    epsilon : float in (0, 1]
        The directional margin reached is at least ``1 - ε`` of the largest possible one.

    Notes
    -----
    Source: Panagiotakopoulos and Tsampouka, "The Perceptron with Dynamic Margin", ALT 2011.
    """

    PARAMETERS = (Parameter("epsilon", **FRACTION),)

    cdef void use_formula(self):
        self.formula.threshold, self.formula.step = _pdm_threshold, _unit_step


# Every member by its name.
RULES = {rule.__name__: rule for rule in (PA, PAM, PAUM, TMargitron, LMargitron, MICRA, CRAMMA, ALMA, ROMMA, PDM)}
