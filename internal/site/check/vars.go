package check

import (
	"maps"
	"math"
	"slices"
)

// checkVars reports numbers that JSON cannot represent, because the inventory is JSON.
func checkVars(ix *index, found *findings) {
	checkFinite(found, at("site", "vars"), ix.Vars)
	for g := range each(ix.Groups) {
		checkFinite(found, at("group", g.Name, "vars"), g.Vars)
	}
	for n := range each(ix.Nodes) {
		if len(n.Vars) > 0 {
			checkFinite(found, atNode(n, "vars"), n.Vars)
		}
	}
}

func checkFinite(found *findings, key []string, vars map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if within := append(slices.Clone(key), name); !finite(vars[name]) {
			found.report(within, "write it as a string", "%s is not a finite number", name)
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
