package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Scale shows the values of one row: all in one unit, with the same digits.
type Scale struct {
	Factor float64 // of what is shown to the value as sampled
	Unit   string  // "" for pure numbers
	Digits int     // after the point
}

// A prefix is a unit as it is shown, with how much of the sampled unit it is.
type prefix struct {
	size float64
	name string
}

// prefixes are the units in which a sampled unit is shown, the smallest first. Another one is shown as it is.
var prefixes = map[string][]prefix{
	"bit/s": {{1, "b/s"}, {1e3, "kb/s"}, {1e6, "Mb/s"}, {1e9, "Gb/s"}},
	"B/s":   {{1, "B/s"}, {1 << 10, "KiB/s"}, {1 << 20, "MiB/s"}, {1 << 30, "GiB/s"}},
	"B":     {{1, "B"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}},
	"s":     {{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}},
	"1/s":   {{1, "/s"}, {1e3, "k/s"}, {1e6, "M/s"}},
	"1":     {{1, ""}},
}

// ScaleOf chooses for values that stand beside each other: the unit by the largest of them, and
// digits so that the smallest has two of its own, but the largest no more than five.
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
	whole := int(math.Floor(math.Log10(most * s.Factor))) // 0: from 1 to 9.99
	small := int(math.Floor(math.Log10(least * s.Factor)))
	s.Digits = max(2-whole, min(1-small, 4-whole), 0)
	return s
}

// ScaleOfFigure shows shares of processors in per cent, as the papers do.
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

// Number shows a value without its unit.
func (s Scale) Number(n float64) string {
	if !Number(n).Is() {
		return "–"
	}
	return minus(strconv.FormatFloat(n*s.Factor, 'f', s.Digits, 64))
}

// Value shows a value with its unit.
func (s Scale) Value(n float64) string {
	if !Number(n).Is() {
		return "–"
	}
	return strings.TrimSpace(s.Number(n) + " " + s.Unit)
}

// minus has a real minus sign, as wide as a plus.
func minus(text string) string {
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		if strings.Trim(rest, "0.") == "" {
			return rest
		}
		return "−" + rest
	}
	return text
}

// Percent shows the share with one digit, or none where it is large.
func Percent(share float64) string {
	if math.Abs(share) >= 0.995 {
		return minus(fmt.Sprintf("%.0f", share*100))
	}
	return minus(fmt.Sprintf("%.1f", share*100))
}

// Change shows how a ratio differs from 1: −9.3 %, +12.0 %; from ten times on, the ratio itself.
func Change(ratio float64) string {
	if !Number(ratio).Is() {
		return "–"
	}
	if ratio >= 10 {
		return fmt.Sprintf("× %.1f", ratio)
	}
	return signed(ratio) + " %"
}

// signed is a change without its unit.
func signed(ratio float64) string {
	text := Percent(ratio - 1)
	if !strings.HasPrefix(text, "−") && strings.Trim(text, "0.") != "" {
		text = "+" + text
	}
	return text
}

// Interval shows the interval of a change with its unit: −10.1 to −8.2 %, or × 19.1 to × 20.3.
func Interval(low, high float64) string {
	if high >= 10 {
		return Between(low, high)
	}
	return Between(low, high) + " %"
}

// Between shows the interval of a change: −10.1 to −8.2.
func Between(low, high float64) string {
	if high >= 10 {
		return fmt.Sprintf("× %.1f to × %.1f", low, high)
	}
	return signed(low) + " to " + signed(high)
}

// Thousands groups digits by three, with thin spaces.
func Thousands(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}
