package sitefile

import (
	"net/netip"
	"strconv"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/strict"
)

type (
	mode    uint32 // of a file
	subnet  netip.Prefix
	address netip.Addr
	batch   site.Batch
)

func mistake(format string, args ...any) *problem.Problem {
	return problem.New(problem.Mistake, format, args...)
}

func (m *mode) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("a mode must be a string of octal digits, not %s", strict.Say(value)).Try(`write "0644"`)
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return mistake("%s is no mode", strict.Say(text)).Try(`write octal digits, as in "0644"`)
	}
	*m = mode(n)
	return nil
}

func (s *subnet) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("a subnet must be a string, not %s", strict.Say(value)).Try(`write "10.8.67.0/24"`)
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		if addr, err := netip.ParseAddr(text); err == nil && addr.Is4() {
			return mistake("%s is no subnet: it does not say how long the prefix is", strict.Say(text)).Try(`write "%s/24"`, text)
		}
		return mistake("%s is no subnet", strict.Say(text)).Try(`write "10.8.67.0/24"`)
	}
	if masked := prefix.Masked(); masked != prefix {
		return mistake("%s has bits beyond its prefix", strict.Say(text)).Try(`write "%s"`, masked)
	}
	*s = subnet(prefix)
	return nil
}

func (a *address) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("an address must be a string, not %s", strict.Say(value)).Try(`write "10.8.67.1"`)
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			return mistake("%s is an address with a prefix", strict.Say(text)).Try(`write "%s"`, prefix.Addr())
		}
		return mistake("%s is no address", strict.Say(text)).Try(`write "10.8.67.1"`)
	}
	*a = address(addr)
	return nil
}

func (b *batch) Parse(value any) *problem.Problem {
	var parsed site.Batch
	ok := false
	switch v := value.(type) {
	case int64:
		parsed, ok = site.ParseBatch(strconv.FormatInt(v, 10))
	case string:
		if parsed, ok = site.ParseBatch(v); parsed.Nodes > 0 {
			return mistake("a number of nodes must be a whole number, not %s", strict.Say(value)).Try("write it without quotation marks: %s", v)
		}
	}
	if !ok {
		return mistake("%s is neither a number of nodes nor a share of them", strict.Say(value)).Try(`write 1 or more, or "1%%" to "100%%"`)
	}
	*b = batch(parsed)
	return nil
}
