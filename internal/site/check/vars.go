package check

import (
	"maps"
	"math"
	"slices"
)

// vars refuses numbers that JSON, in which the inventory is, cannot have.
func (c *checker) vars() {
	c.finite(at("site", "vars"), c.site.Vars)
	for i := range c.site.Nodes {
		if n := &c.site.Nodes[i]; len(n.Vars) > 0 {
			c.finite(at("node", n.Name, "vars"), n.Vars)
		}
	}
}

func (c *checker) finite(key []string, vars map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if within := append(slices.Clone(key), name); !finite(vars[name]) {
			c.wrong(within, "write it as a string", "%s has a number that is none", name)
		}
	}
}

func finite(value any) bool {
	switch v := value.(type) {
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case []any:
		return !slices.ContainsFunc(v, func(x any) bool { return !finite(x) })
	case map[string]any:
		for _, x := range v {
			if !finite(x) {
				return false
			}
		}
	}
	return true
}
