# cython: embedsignature=True
"""The family of margin rules: when a learner updates, and by how much.

Every learner of the family does ``w ← shrink·w + grow·y·x`` on a row whose functional margin fails ``m ≤ threshold``. The
three are functions of scalars alone:

===  =====================================================================================
m    functional margin ``y·f(x)`` of the row
q    squared length of the row with its augmented and private coordinates, ``‖x‖² + ρ² + λ``
N    squared length of the whole weight vector (augmented and private coordinates included)
t    number of updates so far
R    square root of the largest q
===  =====================================================================================

A rule is a class below and two small functions beside it: the threshold, and the step. That is the one place for its formula;
the compiled loop asks for nothing else.
"""

from libc.math cimport INFINITY, isfinite


cdef double _no_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return -INFINITY


cdef void _no_step(const double *p, double m, double q, double N, double t, double R,
                   double *shrink, double *grow) noexcept nogil:
    pass


cdef class Rule:
    """A member of the family; use one of its subclasses.

    Rules are values: equal when their parameters are equal, hashable, picklable.
    """

    def __cinit__(self):
        # An object made past its __init__ must not send the compiled loop to address 0.
        self.formula.threshold = _no_threshold
        self.formula.step = _no_step

    def __init__(self):
        raise TypeError("Rule is the whole family; use one of its members: PA, PAM, PAUM, ROMMA")

    def threshold(self, int y, double N=0.0, double t=0.0, double R=1.0):
        """Return the margin at or below which a row of label ``y`` (+1 or -1) causes an update."""
        return self.formula.threshold(self.formula.p, y, N, t, R)

    def step(self, double m, double q, double N=0.0, double t=0.0, double R=1.0):
        """Return ``(shrink, grow)`` of the update on a row of margin ``m`` and squared length ``q``."""
        cdef double shrink = 1.0, grow = 0.0
        self.formula.step(self.formula.p, m, q, N, t, R, &shrink, &grow)
        return shrink, grow

    @property
    def parameters(self):
        """The parameters by name, as the constructor takes them."""
        return {name: getattr(self, name) for name in self._parameters}

    def __eq__(self, other):
        return type(self) is type(other) and self.parameters == other.parameters

    def __hash__(self):
        return hash((type(self), *self.parameters.values()))

    def __reduce__(self):
        return type(self), tuple(self.parameters.values())

    def __repr__(self):
        settings = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({settings})"


cdef double _uneven_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return p[1] if y > 0 else p[0]


cdef void _constant_step(const double *p, double m, double q, double N, double t, double R,
                         double *shrink, double *grow) noexcept nogil:
    grow[0] = p[2]


cdef class PAUM(Rule):
    """The perceptron algorithm with uneven margins.

    Test ``m ≤ τ_y`` with ``τ_y = tau_pos`` for positive rows and ``tau_neg`` for negative ones; shrink 1; grow η.

    Parameters
    ----------
    tau_neg, tau_pos : float
        Margins asked of negative and positive rows. Negative values allow errors.
    eta : float > 0
        Learning rate η.

    Notes
    -----
    On rows separable with margin Γ by a unit vector with ``|b| ≤ R`` there are at most
    ``4((R/Γ)² + max(τ₋, τ₊)/(ηΓ²))`` updates.

    Source: Li, Zaragoza, Herbrich, Shawe-Taylor and Kandola, "The Perceptron Algorithm with Uneven Margins", ICML 2002,
    Algorithm 1 and Theorem 2.1.
    """

    _parameters = ("tau_neg", "tau_pos", "eta")

    def __init__(self, double tau_neg, double tau_pos, double eta=1.0):
        if not (isfinite(tau_neg) and isfinite(tau_pos)):
            raise ValueError(f"margins must be finite, got tau_neg={tau_neg:g} and tau_pos={tau_pos:g}")
        if not 0 < eta < INFINITY:
            raise ValueError(f"eta must be finite and greater than 0, got {eta:g}")
        self.formula.threshold = _uneven_threshold
        self.formula.step = _constant_step
        self.formula.constant = True
        self.formula.p[0] = tau_neg
        self.formula.p[1] = tau_pos
        self.formula.p[2] = eta

    @property
    def tau_neg(self):
        """The margin asked of negative rows."""
        return self.formula.p[0]

    @property
    def tau_pos(self):
        """The margin asked of positive rows."""
        return self.formula.p[1]

    @property
    def eta(self):
        """The learning rate η."""
        return self.formula.p[2]


cdef class PAM(PAUM):
    """The perceptron algorithm with margins: PAUM with one margin, ``m ≤ τ``, for both classes.

    Parameters
    ----------
    tau : float
        Margin asked of every row.
    eta : float > 0
        Learning rate η.

    Notes
    -----
    The solution's margin is at least ``τ / (2τ + R²)`` of the largest possible one (η = 1).

    Source: Krauth and Mézard, "Learning algorithms with optimal stability in neural networks", J. Phys. A 20, 1987.
    """

    _parameters = ("tau", "eta")

    def __init__(self, double tau, double eta=1.0):
        super().__init__(tau, tau, eta)

    @property
    def tau(self):
        """The margin asked of every row."""
        return self.formula.p[0]


cdef class PA(PAUM):
    """The perceptron algorithm: update where a row is misclassified, ``m ≤ 0``; shrink 1; grow η.

    Parameters
    ----------
    eta : float > 0
        Learning rate η. It scales the solution and changes nothing else.

    Notes
    -----
    At most ``4(R/Γ)²`` updates on rows separable with margin Γ by a unit vector with ``|b| ≤ R``.

    Source: Rosenblatt 1958; Novikoff, "On convergence proofs on perceptrons", 1962.
    """

    _parameters = ("eta",)

    def __init__(self, double eta=1.0):
        super().__init__(0.0, 0.0, eta)


cdef double _romma_threshold(const double *p, int y, double N, double t, double R) noexcept nogil:
    return 1 - p[0] if N > 0 else INFINITY


cdef void _romma_step(const double *p, double m, double q, double N, double t, double R,
                      double *shrink, double *grow) noexcept nogil:
    if q == 0:
        return  # a row without coordinates cannot be given a margin
    if m >= q * N:  # the row alone asks for a longer vector than all before it; so does the first one, with N = 0
        shrink[0] = 0
        grow[0] = 1 / q
    else:
        shrink[0] = (q * N - m) / (q * N - m * m)
        grow[0] = N * (1 - m) / (q * N - m * m)


cdef class ROMMA(Rule):
    """The aggressive relaxed online maximum margin algorithm: after every update the row has margin 1.

    The first row starts it with ``w = y·x/q``. From then on: test ``m ≤ 1 - δ``; shrink ``(qN - m)/(qN - m²)``; grow
    ``N(1 - m)/(qN - m²)``. The new vector is the shortest ``v`` with ``y⟨v, x⟩ ≥ 1`` and ``⟨v, w⟩ ≥ N``; where
    ``m ≥ qN`` the first of the two implies the other, and it is ``y·x/q``: shrink 0, grow ``1/q``.

    Parameters
    ----------
    delta : float in (0, 1]
        Training ends with all margins above ``1 - δ``; their geometric margin is at least ``1 - δ`` of the largest
        possible one.

    Notes
    -----
    The paper updates where ``m < 1 - δ``; a tie with the threshold counts as a failure here, as for the other rules.

    Source: Li and Long, "The relaxed online maximum margin algorithm", Machine Learning 46, 2002.
    """

    _parameters = ("delta",)

    def __init__(self, double delta):
        if not 0 < delta <= 1:
            raise ValueError(f"delta must be greater than 0 and at most 1, got {delta:g}")
        self.formula.threshold = _romma_threshold
        self.formula.step = _romma_step
        self.formula.p[0] = delta

    @property
    def delta(self):
        """How much smaller than the largest possible margin the solution's may be, δ."""
        return self.formula.p[0]
