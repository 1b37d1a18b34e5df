package main

import (
	"math"
	"math/rand/v2"
)

// A process adds to the logarithm of one figure in one place, round by round, depending on the
// instance of the nodes. The place is a setting. What the host does to all settings alike is drift
// and not a process.
type process func(g *rand.Rand) func(instance int) float64

// A model is how the figures of a host vary without any real difference.
type model struct {
	name   string
	noise  process // of every figure
	more   process // additional process for the figures in strike, or nil
	strike struck
	drift  float64 // how much slower the host gets from the first to the tenth round
	base   process // noise of bare, if it differs from that of the other settings
}

// struck reports whether a process affects a figure.
type struck func(kind string, figure int) bool

func every(string, int) bool           { return true }
func disks(kind string, _ int) bool    { return kind == "disk" }
func strewn(_ string, figure int) bool { return figure%7 == 5 } // three of twenty, in three kinds

func normal(deviation float64) process {
	return func(g *rand.Rand) func(int) float64 {
		return func(int) float64 { return deviation * g.NormFloat64() }
	}
}

// lucky is constant as long as an instance of a node exists.
func lucky(deviation float64) process {
	return func(g *rand.Rand) func(int) float64 {
		last, luck := -1, 0.0
		return func(instance int) float64 {
			if instance != last {
				last, luck = instance, deviation*g.NormFloat64()
			}
			return luck
		}
	}
}

// ar is an autoregressive process that continues across instances.
func ar(correlation, deviation float64) process {
	return func(g *rand.Rand) func(int) float64 {
		x := deviation * g.NormFloat64()
		return func(int) float64 {
			x = correlation*x + math.Sqrt(1-correlation*correlation)*deviation*g.NormFloat64()
			return x
		}
	}
}

// sticky stays in one of two modes with the given probability.
func sticky(apart, stays float64) process {
	return func(g *rand.Rand) func(int) float64 {
		mode := g.IntN(2)
		return func(int) float64 {
			if g.Float64() > stays {
				mode = 1 - mode
			}
			return apart * float64(mode)
		}
	}
}

// bursts models other processes that take a share of the host in some of the trials.
func bursts(lost, often, noise float64) process {
	return func(g *rand.Rand) func(int) float64 {
		return func(int) float64 {
			x := noise * g.NormFloat64()
			if g.Float64() < often {
				x += math.Log1p(-lost)
			}
			return x
		}
	}
}

// student has heavy tails, with two degrees of freedom or one (Cauchy).
func student(degrees int, scale float64) process {
	return func(g *rand.Rand) func(int) float64 {
		return func(int) float64 {
			square := 0.0
			for range degrees {
				x := g.NormFloat64()
				square += x * x
			}
			x := g.NormFloat64() / math.Sqrt(square/float64(degrees))
			return max(-2, min(2, scale*x)) // limit the deviation to about a factor of seven
		}
	}
}

// tail is one-sided, with a median of zero.
func tail(scale float64) process {
	return func(g *rand.Rand) func(int) float64 {
		return func(int) float64 { return scale * (math.Ln2 - g.ExpFloat64()) }
	}
}

// models are those of the review of the lab, and some in between. "Strewn" affects figures of
// several kinds of test.
var models = []model{
	{name: "independent, 1 %", noise: normal(0.01)},
	{name: "independent, 2 %", noise: normal(0.02)},
	{name: "independent, 4 %", noise: normal(0.04)},
	{name: "independent, 8 %", noise: normal(0.08)},
	{name: "instances of 2 %, 1 %", noise: normal(0.01), more: lucky(0.02), strike: every},
	{name: "instances of 6 %, 1 %", noise: normal(0.01), more: lucky(0.06), strike: every},
	{name: "sticky modes 10 %, stay 0.9, all", noise: normal(0.01), more: sticky(0.10, 0.9), strike: every},
	{name: "sticky modes 6 %, stay 0.95, all", noise: normal(0.01), more: sticky(0.06, 0.95), strike: every},
	{name: "sticky modes 10 %, stay 0.9, disk", noise: normal(0.01), more: sticky(0.10, 0.9), strike: disks},
	{name: "sticky modes 6 %, stay 0.95, disk", noise: normal(0.01), more: sticky(0.06, 0.95), strike: disks},
	{name: "sticky modes 10 %, stay 0.9, strewn", noise: normal(0.01), more: sticky(0.10, 0.9), strike: strewn},
	{name: "AR 0.5, 3 %, all", noise: normal(0.01), more: ar(0.5, 0.03), strike: every},
	{name: "AR 0.9, 3 %, all", noise: normal(0.01), more: ar(0.9, 0.03), strike: every},
	{name: "AR 0.9, 6 %, all", noise: normal(0.01), more: ar(0.9, 0.06), strike: every},
	{name: "AR 0.7, 6 %, disk", noise: normal(0.01), more: ar(0.7, 0.06), strike: disks},
	{name: "AR 0.9, 3 %, disk", noise: normal(0.01), more: ar(0.9, 0.03), strike: disks},
	{name: "AR 0.9, 6 %, disk", noise: normal(0.01), more: ar(0.9, 0.06), strike: disks},
	{name: "AR 0.97, 6 %, disk", noise: normal(0.01), more: ar(0.97, 0.06), strike: disks},
	{name: "AR 0.9, 6 %, strewn", noise: normal(0.01), more: ar(0.9, 0.06), strike: strewn},
	{name: "AR 0.97, 6 %, strewn", noise: normal(0.01), more: ar(0.97, 0.06), strike: strewn},
	{name: "drift of the host 30 %, 2 %", noise: normal(0.02), drift: 0.3},
	{name: "drift of the host 100 %, 1 %", noise: normal(0.01), drift: 1},
	{name: "bursts -30 % in 1 of 3, 1.5 %", noise: bursts(0.3, 1./3, 0.015)},
	{name: "t with 2 degrees, 3 %", noise: student(2, 0.03)},
	{name: "Cauchy, 1 %", noise: student(1, 0.01)},
	{name: "spread of 8 % against 1 % of bare", noise: normal(0.08), base: normal(0.01)},
	{name: "one-sided tail, same median", noise: tail(0.04), base: normal(0.04)},
}
