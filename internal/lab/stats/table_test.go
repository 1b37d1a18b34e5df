package stats

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// A noise gives what a measured value is multiplied by; what drifts depends on when it is measured, from 0 to 1 over ten rounds.
type noise struct {
	name   string
	factor func(g *rand.Rand, when float64) float64
}

func lognormal(g *rand.Rand, deviation float64) float64 { return math.Exp(deviation * g.NormFloat64()) }

// Noise up to which a difference of 10 % must be found with ten rounds, and more that must not be taken for a difference.
var (
	quiet = []noise{
		{"lognormal 1 %", func(g *rand.Rand, _ float64) float64 { return lognormal(g, 0.01) }},
		{"lognormal 2 %", func(g *rand.Rand, _ float64) float64 { return lognormal(g, 0.02) }},
		{"1 %, one in 20 up to half slower", func(g *rand.Rand, _ float64) float64 {
			v := lognormal(g, 0.01)
			if g.Float64() < 0.05 {
				v *= 1 + g.Float64()/2
			}
			return v
		}},
		{"heavy tails: 1 % × t3", func(g *rand.Rand, _ float64) float64 {
			return math.Exp(0.01 * distuv.StudentsT{Sigma: 1, Nu: 3, Src: g}.Rand())
		}},
		{"2 %, drift of 30 % over ten rounds", func(g *rand.Rand, when float64) float64 { return (1 + 0.3*when) * lognormal(g, 0.02) }},
		{"bimodal: 3 % faster in one of three", func(g *rand.Rand, _ float64) float64 {
			v := lognormal(g, 0.01)
			if g.Float64() < 1./3 {
				v /= 1.03
			}
			return v
		}},
		{"uniform ± 3 %", func(g *rand.Rand, _ float64) float64 { return 0.97 + 0.06*g.Float64() }},
		{"1.5 %, told in steps of 1 %", func(g *rand.Rand, _ float64) float64 { return math.Round(100*lognormal(g, 0.015)) / 100 }},
	}
	loud = []noise{
		{"lognormal 4 %", func(g *rand.Rand, _ float64) float64 { return lognormal(g, 0.04) }},
		{"lognormal 8 %", func(g *rand.Rand, _ float64) float64 { return lognormal(g, 0.08) }},
		{"2 %, one in 5 up to twice as slow", func(g *rand.Rand, _ float64) float64 {
			v := lognormal(g, 0.02)
			if g.Float64() < 0.2 {
				v *= 1 + g.Float64()
			}
			return v
		}},
		{"bimodal: a tenth faster in one of two", func(g *rand.Rand, _ float64) float64 {
			v := lognormal(g, 0.01)
			if g.Float64() < 0.5 {
				v /= 1.1
			}
			return v
		}},
		{"heavy tails: 3 % × t2", func(g *rand.Rand, _ float64) float64 {
			return math.Exp(0.03 * distuv.StudentsT{Sigma: 1, Nu: 2, Src: g}.Rand())
		}},
		{"1 %, drift to and fro of 20 % in three rounds", func(g *rand.Rand, when float64) float64 {
			return (1 + 0.1*math.Sin(when*21)) * lognormal(g, 0.01)
		}},
	}
)

// A table as the lab makes it: four figures, each in bare, in control and in three settings, in the order that Order gives, one after
// another. Twelve rows, of which three each have the same base. The setting of row 0 is slower by a factor.
type table struct {
	noise  noise
	random *rand.Rand
	seed   uint64
	slower float64
	rows   []Row
}

func newTable(n noise, seed uint64, slower float64) *table {
	return &table{noise: n, random: rand.New(rand.NewPCG(seed, 4)), seed: seed, slower: slower, rows: make([]Row, 12)}
}

// measure adds a round; round 0 is dropped, as the lab does.
func (t *table) measure(round int) {
	const settings = 5
	for figure := range 4 {
		values := make([]float64, settings)
		for slot, setting := range Order(settings, round, t.seed) {
			values[setting] = 1000 * t.noise.factor(t.random, (float64(round-1)+float64(slot)/settings)/10)
		}
		for k := range 3 {
			row, value := &t.rows[figure*3+k], values[2+k]
			if figure == 0 && k == 0 {
				value *= t.slower
			}
			row.Base, row.Control, row.Setting = append(row.Base, values[0]), append(row.Control, values[1]), append(row.Setting, value)
		}
	}
}

// judged measures ten rounds, then two more as long as Wide says so, up to a bound.
func (t *table) judged(most int) []Judged {
	for round := 1; round <= 10; round++ {
		t.measure(round)
	}
	for round := 11; round < most && Wide(t.rows, 0, 0.06); round += 2 {
		t.measure(round)
		t.measure(round + 1)
	}
	return Judge(t.rows, 0)
}
