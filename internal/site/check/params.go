package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/params"
	"orrery/internal/text/pattern"
	"orrery/roles"
)

// paramName matches names of parameters, which become names of variables.
var paramName = pattern.New(`^[a-z][a-z0-9_]{0,62}$`)

// checkRoleParams checks the parameters that a role declares.
func checkRoleParams(found *findings, r *site.Role) {
	first := map[string]bool{}
	for k := range r.Params {
		p, key := &r.Params[k], at("role", r.Name, "param", k)
		switch {
		case !paramName().MatchString(p.Name):
			found.report(append(key, "name"), "write small letters, digits and _, such as max_connections",
				"parameter name %q is not valid", p.Name)
		case first[p.Name]:
			found.report(append(key, "name"), "declare it once", "parameter %s is declared twice", p.Name)
		case !slices.Contains(params.Types, p.Type):
			found.report(append(key, "type"), "use "+sentence(params.Types), "type %q is unknown", p.Type)
		case p.Type != "string" && p.Type != "list" && (len(p.Values) > 0 || p.Check != ""):
			found.report(key, "remove values and check", "parameter %s: only strings and lists have values or check",
				p.Name)
		}
		first[p.Name] = true
		if _, err := regexp.Compile(p.Check); err != nil {
			found.report(append(key, "check"), `write an expression such as "[a-z]+"`,
				"%q is not a regular expression", p.Check)
			continue
		}
		if p.Default == nil {
			continue
		}
		if _, mistake := params.Parse(p, p.Default); mistake != nil {
			found.report(append(key, "default"), mistake.Cure, "default of parameter %s: %s", p.Name, mistake.What)
		}
	}
}

// checkSettings checks the values that the site file gives to parameters of roles, and that every node has
// those that its roles need.
func checkSettings(ix *index, found *findings) {
	checkRoleSettings(ix, found, at("settings"), ix.Settings)
	for g := range each(ix.Groups) {
		checkRoleSettings(ix, found, at("group", g.Name, "role"), g.Settings)
	}
	required := slices.ContainsFunc(ix.Roles, hasRequired)
	missing := map[string]bool{}
	for n := range each(ix.Nodes) {
		if len(n.Settings) > 0 {
			checkRoleSettings(ix, found, atNode(n, "role"), n.Settings)
		}
		if !required {
			continue
		}
		for _, r := range ix.RolesOf(n) {
			checkRequired(ix, found, n, r, missing)
		}
	}
}

// hasRequired reports whether a role has parameters that the site must set.
func hasRequired(r site.Role) bool {
	return slices.ContainsFunc(r.Params, func(p site.Param) bool { return p.Default == nil })
}

func checkRoleSettings(ix *index, found *findings, key []string, all site.Settings) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r, key := ix.roleByName[name], append(slices.Clone(key), name)
		if r == nil {
			addUnknownRole(ix, found, key, name)
			continue
		}
		for _, param := range slices.Sorted(maps.Keys(all[name])) {
			checkSetting(found, append(slices.Clone(key), param), r, param, all[name][param])
		}
	}
}

func checkSetting(found *findings, key []string, r *site.Role, name string, value any) {
	i := slices.IndexFunc(r.Params, func(p site.Param) bool { return p.Name == name })
	if i < 0 {
		var known []string
		for k := range r.Params {
			known = append(known, r.Params[k].Name)
		}
		cure := "it has none"
		if len(known) > 0 {
			cure = "it has " + sentence(known)
		}
		if near := found.nearest("param of "+r.Name, name, known); near != "" {
			cure = fmt.Sprintf("did you mean %q?", near)
		}
		found.report(key, cure, "role %s has no parameter %q", r.Name, name)
		return
	}
	if _, mistake := params.Parse(&r.Params[i], value); mistake != nil {
		found.report(key, mistake.Cure, "parameter %s of role %s: %s", name, r.Name, mistake.What)
	}
}

// checkRequired reports parameters without a value, once for each.
func checkRequired(ix *index, found *findings, n *site.Node, r *site.Role, reported map[string]bool) {
	for i := range r.Params {
		p := &r.Params[i]
		if p.Default != nil || !paramName().MatchString(p.Name) || reported[r.Name+"."+p.Name] ||
			params.Said(ix.Site, n, r.Name, p.Name) != nil {
			continue
		}
		reported[r.Name+"."+p.Name] = true
		table := "role." + r.Name
		if roles.IsShipped(r.Name) {
			table = fmt.Sprintf("role.%q", r.Name)
		}
		cure := fmt.Sprintf("set it in [%s]", table)
		if p.Doc != "" {
			cure += ": " + p.Doc
		}
		found.report(atNode(n), cure,
			"node %s: role %s needs its parameter %s", n.Name, r.Name, p.Name)
	}
}
