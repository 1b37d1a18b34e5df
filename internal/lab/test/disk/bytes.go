package disk

import (
	"strconv"
	"strings"

	"orrery/internal/problem"
)

// bytes is a size, written as "4KiB", "1MiB", "2GiB" or a number. Figures have it in the short form of fio and of the papers: 4k, 1M.
type bytes int64

var units = []struct {
	long, short string
	factor      int64
}{{"TiB", "T", 1 << 40}, {"GiB", "G", 1 << 30}, {"MiB", "M", 1 << 20}, {"KiB", "k", 1 << 10}}

// UnmarshalText reads a size.
func (b *bytes) UnmarshalText(text []byte) error {
	number, factor := strings.TrimSpace(string(text)), int64(1)
	for _, u := range units {
		rest, ok := strings.CutSuffix(number, u.long)
		if !ok {
			rest, ok = strings.CutSuffix(number, u.short)
		}
		if ok {
			number, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > (1<<60)/factor {
		return problem.New(problem.Mistake, "%q is no size", text).Try(`write "4KiB", "256MiB", "2GiB" or a number of bytes`)
	}
	*b = bytes(n * factor)
	return nil
}

// String gives the short form.
func (b bytes) String() string {
	for _, u := range units {
		if int64(b) >= u.factor && int64(b)%u.factor == 0 {
			return strconv.FormatInt(int64(b)/u.factor, 10) + u.short
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
