package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Scale formats the values of one row with the same unit and the same digits.
type Scale struct {
	Factor float64 // multiplied with the sampled value
	Unit   string  // or "" for pure numbers
	Digits int     // after the decimal point
}

// A prefix is a displayed unit and its size in the sampled unit.
type prefix struct {
	size float64
	name string
}

// prefixes holds the displayed units for each sampled unit, smallest first. Other units are not
// changed.
var prefixes = map[string][]prefix{
	"bit/s": {{1, "b/s"}, {1e3, "kb/s"}, {1e6, "Mb/s"}, {1e9, "Gb/s"}},
	"B/s":   {{1, "B/s"}, {1 << 10, "KiB/s"}, {1 << 20, "MiB/s"}, {1 << 30, "GiB/s"}},
	"B":     {{1, "B"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}},
	"s":     {{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}},
	"1/s":   {{1, "/s"}, {1e3, "k/s"}, {1e6, "M/s"}},
	"1":     {{1, ""}},
}

// ScaleOf returns the scale for values that are shown together. The largest value determines the
// unit. The smallest value has two significant digits, but the largest no more than five.
func ScaleOf(unit string, values []float64) Scale {
	least, most := math.Inf(1), 0.0
	for _, v := range values {
		if v = math.Abs(v); v > 0 && !math.IsInf(v, 0) {
			least, most = min(least, v), max(most, v)
		}
	}
	at := prefix{1, unit}
	for i, p := range prefixes[unit] {
		if i == 0 || most >= p.size {
			at = p
		}
	}
	s := Scale{Factor: 1 / at.size, Unit: at.name}
	if most == 0 {
		return s
	}
	whole := int(math.Floor(math.Log10(most * s.Factor))) // 0 for 1 to 9.99
	small := int(math.Floor(math.Log10(least * s.Factor)))
	s.Digits = max(2-whole, min(1-small, 4-whole), 0)
	return s
}

// ScaleOfFigure is like ScaleOf, but shows shares of processors in per cent, as the papers do.
func ScaleOfFigure(name, unit string, values []float64) Scale {
	if unit != "1" || !strings.Contains(strings.ToLower(name), "cpu") {
		return ScaleOf(unit, values)
	}
	for i := range values {
		values[i] *= 100
	}
	s := ScaleOf("%", values)
	s.Factor *= 100
	return s
}

// Number formats a value without its unit.
func (s Scale) Number(n float64) string {
	if !Number(n).IsFinite() {
		return "–"
	}
	return withMinusSign(strconv.FormatFloat(n*s.Factor, 'f', s.Digits, 64))
}

// Value formats a value with its unit.
func (s Scale) Value(n float64) string {
	if !Number(n).IsFinite() {
		return "–"
	}
	return strings.TrimSpace(s.Number(n) + " " + s.Unit)
}

// withMinusSign replaces the hyphen by a minus sign, which is as wide as a plus sign.
func withMinusSign(text string) string {
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		if strings.Trim(rest, "0.") == "" {
			return rest
		}
		return "−" + rest
	}
	return text
}

// Percent formats a share with one digit after the point, or with none if it is large.
func Percent(share float64) string {
	if math.Abs(share) >= 0.995 {
		return withMinusSign(fmt.Sprintf("%.0f", share*100))
	}
	return withMinusSign(fmt.Sprintf("%.1f", share*100))
}

// Change formats the difference of a ratio from 1: −9.3 %, +12.0 %. From ten times on it formats
// the ratio.
func Change(ratio float64) string {
	if !Number(ratio).IsFinite() {
		return "–"
	}
	if ratio >= 10 {
		return fmt.Sprintf("× %.1f", ratio)
	}
	return signed(ratio) + " %"
}

// signed formats a change without its unit.
func signed(ratio float64) string {
	text := Percent(ratio - 1)
	if !strings.HasPrefix(text, "−") && strings.Trim(text, "0.") != "" {
		text = "+" + text
	}
	return text
}

// Interval formats the interval of a change with its unit: −10.1 to −8.2 %, or × 19.1 to × 20.3.
func Interval(low, high float64) string {
	if high >= 10 {
		return Between(low, high)
	}
	return Between(low, high) + " %"
}

// Between formats the interval of a change without its unit: −10.1 to −8.2.
func Between(low, high float64) string {
	if high >= 10 {
		return fmt.Sprintf("× %.1f to × %.1f", low, high)
	}
	return signed(low) + " to " + signed(high)
}

// Thousands formats a number with thin spaces between groups of three digits.
func Thousands(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}
