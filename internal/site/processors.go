package site

import (
	"fmt"
	"strconv"
	"strings"
)

// maxProcessors is the maximum number of processors of a machine.
const maxProcessors = 1024

// NormalizeProcessors returns a list of processors, such as "8,0-2,3" (cpuset(7)), in the form in which the
// kernel prints it: "0-3,8". Two lists are equivalent if their forms are equal.
func NormalizeProcessors(list string) (string, error) {
	in, err := parseProcessors(list)
	if err != nil {
		return "", err
	}
	return in.String(), nil
}

// ListProcessors returns the processors of a list, in order, or nil if the list is invalid.
func ListProcessors(list string) (all []int) {
	in, err := parseProcessors(list)
	if err != nil {
		return nil
	}
	for n, listed := range in {
		if listed {
			all = append(all, n)
		}
	}
	return all
}

// MissingProcessors returns the processors in list that other lacks. It returns "" if there are none, or if
// either list is invalid.
func MissingProcessors(list, other string) string {
	in, err := parseProcessors(list)
	covered, err2 := parseProcessors(other)
	if err != nil || err2 != nil {
		return ""
	}
	for n := range in {
		in[n] = in[n] && !covered[n]
	}
	return in.String()
}

// A processorSet records for each processor whether the set contains it. The last entry is always
// false and ends the last range.
type processorSet [maxProcessors + 1]bool

func parseProcessors(list string) (in processorSet, err error) {
	if list == "" {
		return in, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, err := parseProcessorRange(part)
		if err != nil {
			return in, err
		}
		for n := from; n <= to; n++ {
			in[n] = true
		}
	}
	return in, nil
}

func (in *processorSet) String() string {
	var ranges []string
	first := -1
	for n, listed := range in {
		switch {
		case listed && first < 0:
			first = n
		case listed || first < 0:
		case first == n-1:
			ranges, first = append(ranges, strconv.Itoa(first)), -1
		default:
			ranges, first = append(ranges, fmt.Sprintf("%d-%d", first, n-1)), -1
		}
	}
	return strings.Join(ranges, ",")
}

// parseProcessorRange parses one part of a list: a number or a range.
func parseProcessorRange(part string) (from, to uint64, err error) {
	first, last, isRange := strings.Cut(part, "-")
	if !isRange {
		last = first
	}
	if from, err = strconv.ParseUint(first, 10, 16); err != nil {
		return 0, 0, fmt.Errorf("%q is not a processor number", part)
	}
	to, err = strconv.ParseUint(last, 10, 16)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("%q is not a range of processors", part)
	case from > to:
		return 0, 0, fmt.Errorf("%q is reversed", part)
	case to >= maxProcessors:
		return 0, 0, fmt.Errorf("processor number %d is too high", to)
	}
	return from, to, nil
}

// SameProcessors reports whether two lists contain the same processors.
func SameProcessors(a, b string) bool {
	x, err := parseProcessors(a)
	y, err2 := parseProcessors(b)
	return a == b || err == nil && err2 == nil && x == y
}
