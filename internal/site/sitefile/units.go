package sitefile

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
)

type (
	size     int64 // bytes
	duration time.Duration
	mode     uint32 // of a file
	subnet   netip.Prefix
	address  netip.Addr
	batch    site.Batch
)

func mistake(format string, args ...any) *problem.Problem {
	return problem.New(problem.Mistake, format, args...)
}

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

func (s *size) parse(value any) *problem.Problem {
	if n, ok := value.(int64); ok {
		if n < 0 {
			return mistake("%d is less than nothing", n)
		}
		*s = size(n)
		return nil
	}
	text, ok := value.(string)
	if !ok {
		return mistake("a size must be a string or a number of bytes, not %s", say(value)).Try(`write "512MiB" or "2GiB"`)
	}
	number, factor := strings.TrimSpace(text), 1.0
	for _, unit := range sizeUnits {
		if n, found := strings.CutSuffix(number, unit.suffix); found {
			number, factor = strings.TrimSpace(n), unit.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0) || n*factor > math.MaxInt64/2 || strings.ContainsAny(number, "xXpPeE_") {
		p := mistake("%s is no size", say(text))
		digits := strings.TrimRight(number, "kKMGTiIbB")
		if unit := strings.TrimLeft(strings.ToUpper(number[len(digits):]), " "); unit != "" && unit[0] != 'B' && unit[0] != 'I' {
			if _, err := strconv.ParseFloat(strings.TrimSpace(digits), 64); err == nil {
				return p.Try("write \"%s%ciB\"", strings.TrimSpace(digits), unit[0])
			}
		}
		return p.Try(`write "512MiB", "2GiB" or a number of bytes`)
	}
	*s = size(n * factor)
	return nil
}

func (d *duration) parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		p := mistake("a duration must be a string, not %s", say(value))
		if n, ok := value.(int64); ok && n > 0 {
			return p.Try(`write "%ds"`, n)
		}
		return p.Try(`write "500ms" or "2m"`)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			return mistake("%s is no duration", say(text)).Try(`write "%ds"`, n)
		}
		return mistake("%s is no duration", say(text)).Try(`write "500ms" or "2m"`)
	}
	if parsed <= 0 {
		return mistake("%s is no time at all", say(text)).Try(`write "500ms" or "2m"`)
	}
	*d = duration(parsed)
	return nil
}

func (m *mode) parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("a mode must be a string of octal digits, not %s", say(value)).Try(`write "0644"`)
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return mistake("%s is no mode", say(text)).Try(`write octal digits, as in "0644"`)
	}
	*m = mode(n)
	return nil
}

func (s *subnet) parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("a subnet must be a string, not %s", say(value)).Try(`write "10.8.67.0/24"`)
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		if addr, err := netip.ParseAddr(text); err == nil && addr.Is4() {
			return mistake("%s is no subnet: it does not say how long the prefix is", say(text)).Try(`write "%s/24"`, text)
		}
		return mistake("%s is no subnet", say(text)).Try(`write "10.8.67.0/24"`)
	}
	if masked := prefix.Masked(); masked != prefix {
		return mistake("%s has bits beyond its prefix", say(text)).Try(`write "%s"`, masked)
	}
	*s = subnet(prefix)
	return nil
}

func (a *address) parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("an address must be a string, not %s", say(value)).Try(`write "10.8.67.1"`)
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			return mistake("%s is an address with a prefix", say(text)).Try(`write "%s"`, prefix.Addr())
		}
		return mistake("%s is no address", say(text)).Try(`write "10.8.67.1"`)
	}
	*a = address(addr)
	return nil
}

func (b *batch) parse(value any) *problem.Problem {
	var parsed site.Batch
	ok := false
	switch v := value.(type) {
	case int64:
		parsed, ok = site.ParseBatch(strconv.FormatInt(v, 10))
	case string:
		if parsed, ok = site.ParseBatch(v); parsed.Nodes > 0 {
			return mistake("a number of nodes must be a whole number, not %s", say(value)).Try("write it without quotation marks: %s", v)
		}
	}
	if !ok {
		return mistake("%s is neither a number of nodes nor a share of them", say(value)).Try(`write 1 or more, or "1%%" to "100%%"`)
	}
	*b = batch(parsed)
	return nil
}
