package render

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/pattern"
)

// Errors of text/template, after "template: NAME:LINE:". An error of an execution first quotes the
// expression.
var (
	execution   = pattern.New(`^(?:\d+: )?executing ".*?" at <(.*?)>: (.*)$`)
	noField     = pattern.New(`^can't evaluate field (\w+) in type `)
	noEntry     = pattern.New(`^map has no entry for key "(.*)"$`)
	nilPointer  = pattern.New(`^nil pointer evaluating .*\.(\w+)$`)
	inFunction  = pattern.New(`^error calling (\w+): (.*)$`)
	badArgument = pattern.New(`^wrong number of args for (\w+): want (\d+) got (\d+)$`)
	noFunction  = pattern.New(`^function "(\w+)" not defined$`)
)

const templateCure = "docs/roles.md lists what a template can use"

// mistake converts an error of text/template to a problem at its line.
func mistake(role *site.Role, f *site.File, err error) error {
	where, what := role.Dir+"/"+f.Template, err.Error()
	if end := (*exhausted)(nil); errors.As(err, &end) {
		if end.line > 0 {
			where += ":" + strconv.Itoa(end.line)
		}
		return problem.New(problem.Mistake, "%s", end.what).At(where).Try("docs/roles.md lists the limits of templates")
	}
	if rest, ok := strings.CutPrefix(what, "template: "+f.Template+":"); ok {
		if line, text, ok := strings.Cut(rest, ":"); ok {
			where += ":" + line
			what = strings.TrimSpace(text)
		}
	}
	what, cure := explain(what)
	return problem.New(problem.Mistake, "template: %s", problem.Truncate(what, 200)).At(where).Try("%s", cure)
}

// explain returns what is wrong in the words of templates, and the cure.
func explain(text string) (what, cure string) {
	if m := execution().FindStringSubmatch(text); m != nil {
		what, cure = explainExecution(m[1], m[2])
		return what, cure
	}
	switch m := noFunction().FindStringSubmatch(text); {
	case m != nil:
		return "there is no function " + m[1], problem.SuggestOr(m[1], functionNames(), templateCure)
	case text == "unexpected EOF":
		return "an {{if}}, {{range}}, {{with}} or {{define}} has no {{end}}", "add {{end}} where it should end"
	case text == "unexpected {{end}}":
		return "this {{end}} ends nothing", "remove it, or add the {{if}}, {{range}} or {{with}} that it should end"
	}
	return text, templateCure
}

// explainExecution is explain for what an expression did.
func explainExecution(expression, text string) (what, cure string) {
	if m := noField().FindStringSubmatch(text); m != nil {
		return expression + ": there is no field " + m[1], problem.SuggestOr(m[1], fields(), templateCure)
	}
	if m := noEntry().FindStringSubmatch(text); m != nil {
		return expression + ": there is no " + strconv.Quote(m[1]), problem.SuggestOr(m[1], fields(), templateCure)
	}
	if m := nilPointer().FindStringSubmatch(text); m != nil {
		return expression + ": what should have the field " + m[1] + " does not exist", templateCure
	}
	if m := inFunction().FindStringSubmatch(text); m != nil {
		return m[1] + ": " + m[2], templateCure
	}
	if m := badArgument().FindStringSubmatch(text); m != nil {
		return m[1] + " needs " + m[2] + " arguments, not " + m[3], templateCure
	}
	return expression + ": " + text, templateCure
}

// fields returns the names of all fields that templates can use.
func fields() (names []string) {
	names = []string{"Node", "Site", "Role", "Env", "Param", "Nodes", "Networks"}
	for _, view := range []any{NodeView{}, SiteView{}, NetworkView{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(view)) {
			if f.IsExported() {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// functionNames returns the names of all functions that templates can use.
func functionNames() []string {
	own := (&View{}).functions(&site.Role{}, nil)
	delete(own, count)
	return append(slices.Sorted(maps.Keys(own)), "and", "call", "eq", "ge", "gt", "index", "le", "len", "lt", "ne", "not",
		"or", "slice")
}
