// Package params reads the parameters of roles: what their type is, and which value they have on a node.
//
// A role declares its parameters in role.toml. The site file sets them in [role.NAME], for all nodes with the
// role; in [group.GROUP.role.NAME]; and in [node.NODE.role.NAME]. The last one counts. A parameter without a
// default must be set.
package params

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/strict"
)

// Types are the types of parameters.
var Types = []string{"string", "int", "bool", "list", "size", "address"}

// Of returns the values of the parameters of a role on a node, by name, as templates see them: string, int64,
// bool, []string, int64 (bytes) and netip.Addr. Parameters without a value of their type are left out. Package
// check reports them, and values that are not allowed.
func Of(s *site.Site, n *site.Node, r *site.Role) map[string]any {
	values := make(map[string]any, len(r.Params))
	for i := range r.Params {
		p := &r.Params[i]
		said := Said(s, n, r.Name, p.Name)
		if said == nil {
			said = p.Default
		}
		if said == nil {
			continue
		}
		if value, mistake := convert(p, said); mistake == nil {
			values[p.Name] = value
		}
	}
	return values
}

// Said returns what the site file says of a parameter on a node, or nil.
func Said(s *site.Site, n *site.Node, role, param string) any {
	if value, ok := n.Settings[role][param]; ok {
		return value
	}
	for i := len(s.Groups) - 1; i >= 0; i-- {
		if value, ok := s.Groups[i].Settings[role][param]; ok && slices.Contains(n.Groups, s.Groups[i].Name) {
			return value
		}
	}
	return s.Settings[role][param]
}

// Env returns the parameters of a role on a node as variables of its steps and health commands, in the order
// of role.toml: ORRERY_PARAM_PORT=5432. Items of a list are separated by spaces.
func Env(s *site.Site, n *site.Node, r *site.Role) []string {
	values := Of(s, n, r)
	var env []string
	for i := range r.Params {
		if value, ok := values[r.Params[i].Name]; ok {
			env = append(env, "ORRERY_PARAM_"+strings.ToUpper(r.Params[i].Name)+"="+text(value))
		}
	}
	return env
}

func text(value any) string {
	if list, ok := value.([]string); ok {
		return strings.Join(list, " ")
	}
	return fmt.Sprint(value)
}

// Parse returns a value of TOML as a parameter's type, or the mistake in it.
func Parse(p *site.Param, value any) (any, *problem.Problem) {
	converted, mistake := convert(p, value)
	if mistake != nil {
		return nil, mistake
	}
	switch v := converted.(type) {
	case string:
		mistake = checkText(p, v)
	case []string:
		for i := 0; i < len(v) && mistake == nil; i++ {
			mistake = checkText(p, v[i])
		}
	}
	return converted, mistake
}

// convert returns a value of TOML as a parameter's type. It compiles no expression, because it is called for
// each file of each node.
func convert(p *site.Param, value any) (any, *problem.Problem) {
	switch p.Type {
	case "int":
		if n, ok := value.(int64); ok {
			return n, nil
		}
		return nil, wrong(p, value, "a whole number")
	case "bool":
		if yes, ok := value.(bool); ok {
			return yes, nil
		}
		return nil, wrong(p, value, "true or false")
	case "size":
		var size strict.Size
		if mistake := size.Parse(value); mistake != nil {
			return nil, mistake
		}
		return int64(size), nil
	case "address":
		if words, ok := value.(string); ok {
			if a, err := netip.ParseAddr(words); err == nil {
				return a, nil
			}
		}
		return nil, wrong(p, value, `an address such as "10.8.67.5"`)
	case "list":
		return convertList(p, value)
	}
	words, ok := value.(string)
	if !ok {
		return nil, wrong(p, value, "a string")
	}
	return words, nil
}

func convertList(p *site.Param, value any) (any, *problem.Problem) {
	items, ok := value.([]any)
	if !ok {
		return nil, wrong(p, value, `a list such as ["a", "b"]`)
	}
	list := make([]string, 0, len(items))
	for _, item := range items {
		words, ok := item.(string)
		if !ok {
			return nil, wrong(p, item, "a string")
		}
		list = append(list, words)
	}
	return list, nil
}

func wrong(p *site.Param, value any, want string) *problem.Problem {
	return problem.New(problem.Mistake, "%s is not %s", strict.Describe(value), want).Try("%s", cure(p))
}

// checkText checks a string against the values or the expression that a parameter allows. Line breaks are
// refused, because values become lines of files and variables.
func checkText(p *site.Param, words string) *problem.Problem {
	if strings.ContainsAny(words, "\x00\n\r") {
		return problem.New(problem.Mistake, "%s has more than one line", strict.Describe(words)).Try("%s", cure(p))
	}
	if len(p.Values) > 0 && !slices.Contains(p.Values, words) {
		return problem.New(problem.Mistake, "%s is not one of its values", strict.Describe(words)).
			Try("%s", problem.SuggestOr(words, p.Values, "use "+strings.Join(p.Values, ", ")))
	}
	if p.Check == "" {
		return nil
	}
	if whole, err := regexp.Compile("^(?:" + p.Check + ")$"); err == nil && !whole.MatchString(words) {
		return problem.New(problem.Mistake, "%s does not match %s", strict.Describe(words), p.Check).Try("%s", cure(p))
	}
	return nil
}

// cure returns what a parameter is for.
func cure(p *site.Param) string {
	if p.Doc == "" {
		return "its type is " + p.Type
	}
	return p.Doc
}
