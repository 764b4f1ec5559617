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

import inspect


cdef class Rule:
    """A member of the family; use one of its subclasses.

    Rules are values: equal when their parameters are equal, hashable, picklable.
    """

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
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def __eq__(self, other):
        return type(self) is type(other) and self.parameters == other.parameters

    def __hash__(self):
        return hash((type(self), *self.parameters.values()))

    def __reduce__(self):
        return type(self), tuple(self.parameters.values())

    def __repr__(self):
        settings = ", ".join(f"{name}={value:g}" for name, value in self.parameters.items())
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

    def __init__(self, double tau_neg, double tau_pos, double eta=1.0):
        if not eta > 0:
            raise ValueError(f"eta must be greater than 0, got {eta:g}")
        self.formula.threshold = _uneven_threshold
        self.formula.step = _constant_step
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

    def __init__(self, double eta=1.0):
        super().__init__(0.0, 0.0, eta)
