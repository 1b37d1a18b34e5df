package strict

import (
	"net/netip"
	"strconv"
	"strings"

	"orrery/internal/problem"
)

type (
	mode     uint32 // file mode
	subnet   netip.Prefix
	wordList string // one string, or a list of strings, separated by commas
)

// An Address is an IP address without a prefix length.
type Address netip.Addr

func (m *mode) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("a mode must be a string of octal digits, not %s", Describe(value)).Try(`write "0644"`)
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return mistake("%s is not a mode", Describe(text)).Try(`write octal digits, as in "0644"`)
	}
	*m = mode(n)
	return nil
}

func (s *subnet) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("a subnet must be a string, not %s", Describe(value)).Try(`write "10.8.67.0/24"`)
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		if addr, err := netip.ParseAddr(text); err == nil && addr.Is4() {
			return mistake("%s is not a subnet: the prefix length is missing", Describe(text)).
				Try(`write "%s/24"`, text)
		}
		return mistake("%s is not a subnet", Describe(text)).Try(`write "10.8.67.0/24"`)
	}
	if masked := prefix.Masked(); masked != prefix {
		return mistake("%s has bits beyond its prefix", Describe(text)).Try(`write "%s"`, masked)
	}
	*s = subnet(prefix)
	return nil
}

// Parse parses a string such as "10.8.67.1".
func (a *Address) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("an address must be a string, not %s", Describe(value)).Try(`write "10.8.67.1"`)
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			return mistake("%s is an address with a prefix", Describe(text)).Try(`write "%s"`, prefix.Addr())
		}
		return mistake("%s is not an address", Describe(text)).Try(`write "10.8.67.1"`)
	}
	*a = Address(addr)
	return nil
}

func (w *wordList) Parse(value any) *problem.Problem {
	if text, ok := value.(string); ok {
		if strings.Contains(text, ",") {
			return mistake("%s is not a name", Describe(text)).Try(`write a list of names, as in ["a", "b"]`)
		}
		*w = wordList(text)
		return nil
	}
	items, ok := value.([]any)
	if !ok {
		p := mistake("it must be a string or a list of strings, not %s", Describe(value))
		switch value.(type) {
		case int64, float64, bool:
			p.Try("put it in quotation marks: \"%v\"", value)
		}
		return p
	}
	words := make([]string, len(items))
	for i, item := range items {
		word, ok := item.(string)
		if !ok || word == "" || strings.Contains(word, ",") {
			return mistake("%s is not a name", Describe(item)).Try(`write a list of names, as in ["a", "b"]`)
		}
		words[i] = word
	}
	*w = wordList(strings.Join(words, ","))
	return nil
}

// Schema returns the schema of the values that Parse accepts.
func (*wordList) Schema() JSONSchema {
	word := JSONSchema{"type": "string"}
	return JSONSchema{"anyOf": []JSONSchema{word, {"type": "array", "items": word}}}
}
