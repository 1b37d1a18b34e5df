package site

import (
	"fmt"
	"strconv"
	"strings"
)

// A Batch limits how many nodes of a set are disturbed at once. It is a number or a percentage. The
// zero Batch is no limit.
type Batch struct {
	Nodes   int
	Percent int
}

// ParseBatch parses a number or a percentage, such as "2" or "25%".
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

// IsLimited reports whether the batch is a limit at all.
func (b Batch) IsLimited() bool { return b.Nodes > 0 || b.Percent > 0 && b.Percent < 100 }

// Size returns the maximum number of nodes in a batch out of nodes. A percentage is rounded down, but
// to at least 1.
func (b Batch) Size(nodes int) int {
	switch {
	case !b.IsLimited():
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
