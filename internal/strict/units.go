package strict

import (
	"math"
	"strconv"
	"strings"
	"time"

	"orrery/internal/problem"
)

// A Size is a number of bytes, written as "512MiB" or as a number.
type Size int64

type duration time.Duration

func mistake(format string, args ...any) *problem.Problem {
	return problem.New(problem.Mistake, format, args...)
}

// unit returns the number of bytes of a unit, or 1 for an unknown unit.
func unit(name string) float64 {
	switch name {
	case "KiB":
		return 1 << 10
	case "MiB":
		return 1 << 20
	case "GiB":
		return 1 << 30
	case "TiB":
		return 1 << 40
	}
	return 1
}

// Parse parses a string or a number.
func (s *Size) Parse(value any) *problem.Problem {
	if n, ok := value.(int64); ok {
		if n < 0 {
			return mistake("%d is negative", n)
		}
		*s = Size(n)
		return nil
	}
	text, ok := value.(string)
	if !ok {
		return mistake("a size must be a string or a number of bytes, not %s", Describe(value)).
			Try(`write "512MiB" or "2GiB"`)
	}
	number, factor := strings.TrimSpace(text), 1.0
	if len(number) > 3 {
		if factor = unit(number[len(number)-3:]); factor > 1 {
			number = strings.TrimSpace(number[:len(number)-3])
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0) || n*factor > math.MaxInt64/2 || strings.ContainsAny(number, "xXpPeE_") {
		p := mistake("%s is not a size", Describe(text))
		digits := strings.TrimRight(number, " kKMGTiIbB")
		letter := strings.ToUpper(strings.TrimSpace(number[len(digits):]))
		if _, err := strconv.ParseFloat(digits, 64); err == nil && letter != "" && letter[0] != 'B' && letter[0] != 'I' {
			return p.Try("write \"%s%ciB\"", digits, letter[0])
		}
		return p.Try(`write "512MiB", "2GiB" or a number of bytes`)
	}
	*s = Size(n * factor)
	return nil
}

// Parse parses a string such as "500ms".
func (d *duration) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		p := mistake("a duration must be a string, not %s", Describe(value))
		if n, ok := value.(int64); ok && n > 0 {
			return p.Try(`write "%ds"`, n)
		}
		return p.Try(`write "500ms" or "2m"`)
	}
	parsed, err := parseDuration(text)
	if err != nil {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			return mistake("%s is not a duration", Describe(text)).Try(`write "%ds"`, n)
		}
		return mistake("%s is not a duration", Describe(text)).Try(`write "500ms" or "2m"`)
	}
	if parsed <= 0 {
		return mistake("%s is not a positive duration", Describe(text)).Try(`write "500ms" or "2m"`)
	}
	*d = duration(parsed)
	return nil
}

// maxDays limits the days in a duration to what a time.Duration can hold.
const maxDays = 36500

// parseDuration parses a duration of package time, which may begin with a number of days.
func parseDuration(text string) (time.Duration, error) {
	number, rest, found := strings.Cut(text, "d")
	days, err := strconv.ParseUint(number, 10, 32)
	if !found || err != nil || days > maxDays {
		return time.ParseDuration(text)
	}
	sum := time.Duration(days) * 24 * time.Hour
	if rest == "" {
		return sum, nil
	}
	if strings.ContainsAny(rest[:1], "+-") {
		return time.ParseDuration(text) // which returns the error
	}
	more, err := time.ParseDuration(rest)
	return sum + more, err
}
