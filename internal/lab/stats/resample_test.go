package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"orrery/test/need"
)

// TestResampleAll: for few values, the enumeration of all resamples yields the same distribution.
func TestResampleAll(t *testing.T) {
	for _, x := range [][]float64{{3}, {1, 2}, {1, 2, 4}, {1, 2, 4, 8}, {1, 1, 4, 8, 8}, {1, 2, 4, 8, 16, 32}} {
		n := len(x)
		want := map[float64]float64{}
		total := math.Pow(float64(n), float64(n))
		for code := range int(total) {
			drawn := make([]float64, n)
			for i := range drawn {
				drawn[i], code = x[code%n], code/n
			}
			slices.Sort(drawn)
			want[median(drawn)] += 1 / total
		}
		got := map[float64]float64{}
		r := resample(x)
		for i, m := range r.medians {
			got[m] += r.weights[i]
		}
		for m, p := range want {
			if math.Abs(got[m]-p) > 1e-12 {
				t.Errorf("%v: median %g has %g, not %g", x, m, got[m], p)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%v: %v, not %v", x, got, want)
		}
	}
}

// TestResampleDrawn: for ten values, 100 000 drawn resamples yield nearly the same interval and
// standard error.
func TestResampleDrawn(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 3))
	x := []float64{1, 2, 4, 7, 11, 16, 22, 29, 37, 46}
	const resamples = 100_000
	medians := make([]float64, resamples)
	mean, square := 0.0, 0.0
	for k := range medians {
		drawn := make([]float64, len(x))
		for i := range drawn {
			drawn[i] = x[g.IntN(len(x))]
		}
		slices.Sort(drawn)
		medians[k] = median(drawn)
		mean, square = mean+medians[k]/resamples, square+medians[k]*medians[k]/resamples
	}
	slices.Sort(medians)
	r := resample(x)
	if d := math.Sqrt(square - mean*mean); math.Abs(d/r.deviation()-1) > 0.02 {
		t.Errorf("deviation %g, drawn %g", r.deviation(), d)
	}
	low, high := r.interval()
	tail := distuv.UnitNormal.Survival(distuv.StudentsT{Sigma: 1, Nu: 9}.Quantile(0.975) * math.Sqrt(10./9))
	if l, h := medians[int(tail*resamples)], medians[int((1-tail)*resamples)]; math.Abs(l-low) > 1 ||
		math.Abs(h-high) > 1 {
		t.Errorf("%g to %g, drawn %g to %g", low, high, l, h)
	}
}

// TestResampleMany: the sum of the weights is one for any number of values.
func TestResampleMany(t *testing.T) {
	for _, n := range []int{1, 2, 29, 30, 99, 100, 1000, 1001, 3000} {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(i)
		}
		sum := 0.0
		r := resample(x)
		for _, w := range r.weights {
			sum += w
		}
		if low, high := r.interval(); math.Abs(sum-1) > 1e-6 || math.Abs((low+high)/2-r.median) > 0.001*float64(n) {
			t.Errorf("%d values: weights %.9f, %g to %g", n, sum, low, high)
		}
	}
}

var shapes = map[string]func(g *rand.Rand) float64{
	"normal":      func(g *rand.Rand) float64 { return g.NormFloat64() },
	"uniform":     func(g *rand.Rand) float64 { return g.Float64() - g.Float64() },
	"heavy tails": func(g *rand.Rand) float64 { return distuv.StudentsT{Sigma: 1, Nu: 2, Src: g}.Rand() },
	"bimodal": func(g *rand.Rand) float64 {
		return 0.2*g.NormFloat64() + 3*math.Floor(g.Float64()+0.3) - 3*math.Floor(g.Float64()+0.3)
	},
	"skew": func(g *rand.Rand) float64 { return math.Exp(g.NormFloat64()) - 1 },
}

// TestCoverage: the interval covers the true median in about 95 % of samples for any shape of the
// noise.
func TestCoverage(t *testing.T) {
	samples := need.Times(300, 1500)
	for name, shape := range shapes {
		for _, n := range []int{6, 10, 11, 20, 30} {
			g := rand.New(rand.NewPCG(5, uint64(n))) // a generator for each shape, because maps have no order
			covered := 0
			for range samples {
				if low, high := resample(draw(g, n, shape)).interval(); low <= 0 && 0 <= high {
					covered++
				}
			}
			least := 0.945
			if n == 11 {
				least = 0.92 // see interval
			}
			if share := float64(covered) / float64(samples); share < least {
				t.Errorf("%s, %d values: covered in %.3f", name, n, share)
			}
		}
	}
}

// TestFalseAlarms: p is below a level no more often than it should be, including in the tail.
func TestFalseAlarms(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 8))
	samples := need.Times(500, 3000)
	for _, name := range []string{"normal", "uniform", "heavy tails", "bimodal"} {
		for _, n := range []int{6, 10, 20} {
			low, lower := 0, 0
			for range samples {
				p := resample(draw(g, n, shapes[name])).p()
				if p < 0.05 {
					low++
				}
				if p < 0.05/12 {
					lower++
				}
			}
			if low > samples*6/100 || lower > samples*7/1000 {
				t.Errorf("%s, %d values: below 0.05 in %.4f, below 0.05/12 in %.4f", name, n, float64(low)/float64(samples),
					float64(lower)/float64(samples))
			}
		}
	}
}

func draw(g *rand.Rand, n int, shape func(*rand.Rand) float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = shape(g)
	}
	slices.Sort(x)
	return x
}

func TestHolm(t *testing.T) {
	if got := holm([]float64{0.01, 0.04, 0.03, 0.005}); !slices.EqualFunc(got, []float64{0.03, 0.06, 0.06, 0.02},
		func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("%v", got) // as in R: p.adjust(c(.01, .04, .03, .005), "holm")
	}
}

// TestOrder: each round is a permutation, odd rounds reverse even rounds, and each setting is first
// twice and last twice in every 2n rounds.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, seed, block := rapid.IntRange(1, 12).Draw(r, "n"), rapid.Uint64().Draw(r, "seed"), rapid.IntRange(0, 50).
			Draw(r, "block")
		first, last := make([]int, n), make([]int, n)
		var before []int
		for round := 2 * n * block; round < 2*n*(block+1); round++ {
			order := Order(n, round, seed)
			sorted := slices.Sorted(slices.Values(order))
			for i, v := range sorted {
				if v != i || len(sorted) != n {
					r.Fatalf("%v is no permutation", order)
				}
			}
			if round%2 == 1 {
				slices.Reverse(before)
				if !slices.Equal(order, before) {
					r.Fatalf("%v does not mirror %v", order, before)
				}
			}
			before = order
			first[order[0]]++
			last[order[n-1]]++
		}
		for i := range n {
			if first[i] != 2 || last[i] != 2 {
				r.Fatalf("first %v, last %v", first, last)
			}
		}
	})
	if got := Order(0, 3, 1); len(got) != 0 {
		t.Errorf("%v of none", got)
	}
	if slices.Equal(Order(9, 0, 1), Order(9, 0, 2)) || slices.Equal(Order(9, 0, 1), Order(9, 2, 1)) {
		t.Error("the order is always the same")
	}
}
