package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// A noise is the factor by which a measured value varies. Drift depends on the time of measurement,
// from 0 to 1 over ten rounds.
type noise struct {
	name   string
	factor func(g *rand.Rand, when float64) float64
}

func lognormal(g *rand.Rand, deviation float64) float64 { return math.Exp(deviation * g.NormFloat64()) }

// quiet is noise with which ten rounds must find a difference of 10 %. loud is stronger noise that
// must not be mistaken for a difference.
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
		{"2 %, drift of 30 % over ten rounds", func(g *rand.Rand, when float64) float64 {
			return (1 + 0.3*when) * lognormal(g, 0.02)
		}},
		{"bimodal: 3 % faster in one of three", func(g *rand.Rand, _ float64) float64 {
			v := lognormal(g, 0.01)
			if g.Float64() < 1./3 {
				v /= 1.03
			}
			return v
		}},
		{"uniform ± 3 %", func(g *rand.Rand, _ float64) float64 { return 0.97 + 0.06*g.Float64() }},
		{"1.5 %, told in steps of 1 %", func(g *rand.Rand, _ float64) float64 {
			return math.Round(100*lognormal(g, 0.015)) / 100
		}},
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

// A mood is the luck of an instance of a setting as long as it exists. begin creates one. The
// function that it returns yields the factor of each round.
type mood struct {
	name  string
	begin func(g *rand.Rand) func() float64
}

func steady(factor float64) func() float64 { return func() float64 { return factor } }

var none = mood{"no luck", func(*rand.Rand) func() float64 { return steady(1) }}

// The moods in the issue "Hold the walls", each with additional noise of 1 %.
var moods = []mood{
	{"instances of 2 %", func(g *rand.Rand) func() float64 { return steady(lognormal(g, 0.02)) }},
	{"instances of 4 %", func(g *rand.Rand) func() float64 { return steady(lognormal(g, 0.04)) }},
	{"sticky modes: a tenth slower in one of three", func(g *rand.Rand) func() float64 {
		if g.Float64() < 1./3 {
			return steady(1.1)
		}
		return steady(1)
	}},
	{"slow autocorrelation: 3 %, 0.95 from round to round", func(g *rand.Rand) func() float64 {
		x := 0.03 * g.NormFloat64()
		return func() float64 {
			x = 0.95*x + math.Sqrt(1-0.95*0.95)*0.03*g.NormFloat64()
			return math.Exp(x)
		}
	}},
	{"bimodal: a tenth slower in one of two, anew each round", func(g *rand.Rand) func() float64 {
		return func() float64 { return 1 + 0.1*float64(g.IntN(2)) }
	}},
}

// A table is like a table of the lab. It has four figures, each in bare, in bare again, in three
// settings, and in the first of these again, measured one after another in the order of Order.
// There are twelve rows, of which three each have the same base. The setting of row 0 is slower by
// a factor.
type table struct {
	noise  noise
	random *rand.Rand
	seed   uint64
	slower float64
	mood   mood
	per    int  // rounds per instance, or 0 for all
	untold bool // instances are not recorded, as in old bundles
	lives  [4][6]func() float64
	rows   []Comparison
}

func newTable(n noise, seed uint64, slower float64) *table {
	return &table{noise: n, random: rand.New(rand.NewPCG(seed, 4)), seed: seed, slower: slower, mood: none, per: 1,
		rows: make([]Comparison, 12)}
}

// measure adds a round. It drops round 0, as the lab does.
func (t *table) measure(round int) {
	instance := 0
	if t.per > 0 {
		instance = (round - 1) / t.per
	}
	if t.lives[0][0] == nil || t.per > 0 && (round-1)%t.per == 0 {
		for figure := range t.lives {
			for setting := range t.lives[figure] {
				t.lives[figure][setting] = t.mood.begin(t.random)
			}
		}
	}
	const settings = 6
	for figure := range 4 {
		values := make([]float64, settings)
		for slot, setting := range Order(settings, round, t.seed) {
			values[setting] = 1000 * t.noise.factor(t.random,
				(float64(round-1)+float64(slot)/settings)/10) * t.lives[figure][setting]()
		}
		for k := range 3 {
			row, value := &t.rows[figure*3+k], values[2+k]
			if figure == 0 && k == 0 {
				value *= t.slower
			}
			if row.Controls == nil {
				row.Controls = make([]AAControl, 2)
			}
			row.Baseline, row.Setting = append(row.Baseline, values[0]), append(row.Setting, value)
			row.Controls[0] = AAControl{append(row.Controls[0].A, values[1]), row.Baseline}
			row.Controls[1] = AAControl{append(row.Controls[1].A, values[5]), append(row.Controls[1].B, values[2])}
			if !t.untold {
				row.Instances = append(row.Instances, instance)
			}
		}
	}
}

// judged measures ten rounds, then two more while an interval is wider than 6 %, up to a limit.
func (t *table) judged(most int) []Result {
	for round := 1; round <= 10; round++ {
		t.measure(round)
	}
	judged := Judge(t.rows)
	for round := 11; round < most &&
		slices.ContainsFunc(judged, func(j Result) bool { return j.High-j.Low > 0.06 }); round += 2 {
		t.measure(round)
		t.measure(round + 1)
		judged = Judge(t.rows)
	}
	return judged
}
