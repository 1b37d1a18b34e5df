package site

import (
	"fmt"
	"strconv"
	"strings"
)

// A Batch bounds how many of some nodes are disturbed at once: a number of them, or a share. The
// zero Batch is no bound.
type Batch struct {
	Nodes   int
	Percent int
}

// ParseBatch reads "2" or "25%".
func ParseBatch(text string) (Batch, bool) {
	digits, share := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || digits[0] == '+' || share && n > 100 {
		return Batch{}, false
	}
	if share {
		return Batch{Percent: n}, true
	}
	return Batch{Nodes: n}, true
}

// Bounds reports whether it is a bound at all.
func (b Batch) Bounds() bool { return b.Nodes > 0 || b.Percent > 0 && b.Percent < 100 }

// Of returns how many of so many nodes a batch has at most; a share is rounded down, but to one at least.
func (b Batch) Of(nodes int) int {
	switch {
	case !b.Bounds():
		return nodes
	case b.Percent > 0:
		return max(1, nodes*b.Percent/100)
	}
	return b.Nodes
}

func (b Batch) String() string {
	if b.Percent > 0 {
		return fmt.Sprintf("%d%%", b.Percent)
	}
	return strconv.Itoa(b.Nodes)
}
