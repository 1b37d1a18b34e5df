package test

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
)

// MistakeFunc reports a mistake in the options of a test. The message begins with the option's key.
type MistakeFunc = func(cure, format string, args ...any)

// Read calls decode to overwrite the default options with those of an experiment's file, then check
// to report all mistakes in them.
func Read(decode func(options any) error, options any, check func(MistakeFunc)) error {
	if err := decode(options); err != nil {
		return err
	}
	var all problem.List
	check(func(cure, format string, args ...any) {
		all = append(all, problem.New(problem.Mistake, format, args...).Try("%s", cure))
	})
	return all.OrNil()
}

// CheckDuplicates reports words that are listed more than once.
func CheckDuplicates[T comparable](key string, words []T, wrong MistakeFunc) {
	for i, w := range words {
		if slices.Contains(words[:i], w) {
			wrong("remove one", "%s: %v is listed twice", key, w)
		}
	}
}

// A Rate is in bit/s, written as "100Mbit/s" or as a number.
type Rate float64

// UnmarshalText parses a rate.
func (r *Rate) UnmarshalText(text []byte) error {
	n, factor, err := parseScaled(string(text), []unit{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}})
	if err != nil || !(n >= 0 && n*factor < 1e15) {
		return problem.New(problem.Mistake, "%q is not a rate", text).
			Try(`write "100Mbit/s", "10Gbit/s", a number of bit/s, or 0 for no limit`)
	}
	*r = Rate(n * factor)
	return nil
}

// Bytes is a size, written as "4KiB", "1MiB", "2GiB" or a number. The names of figures use the
// short form of fio and of the papers: 4k, 1M.
type Bytes int64

var (
	longUnits  = []unit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
	shortUnits = []unit{{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"k", 1 << 10}}
)

// UnmarshalText parses a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, factor, err := parseScaled(string(text), slices.Concat(longUnits, shortUnits))
	if err != nil || n != math.Trunc(n) || n < 1 || n*factor > 1<<60 {
		return problem.New(problem.Mistake, "%q is not a size", text).
			Try(`write "4KiB", "256MiB", "2GiB" or a number of bytes`)
	}
	*b = Bytes(n * factor)
	return nil
}

// String returns the short form.
func (b Bytes) String() string {
	for _, u := range shortUnits {
		if size := Bytes(u.size); b >= size && b%size == 0 {
			return strconv.FormatInt(int64(b/size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

type unit struct {
	name string
	size float64
}

// parseScaled parses a number followed by one of the units or by none.
func parseScaled(text string, units []unit) (n, factor float64, err error) {
	number, factor := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(rest), u.size
			break
		}
	}
	n, err = strconv.ParseFloat(number, 64)
	return n, factor, err
}
