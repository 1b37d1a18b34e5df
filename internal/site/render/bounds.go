package render

import (
	"fmt"
	"reflect"
	"strings"
	"text/template"
	"text/template/parse"

	"orrery/internal/text/pattern"
)

// A template may come from a stranger, but rendering it must terminate. Nested ranges can take
// hours without writing anything. Repeated doubling of a string can use all memory.
const (
	maxSource = 1 << 20  // bytes of a template
	maxText   = 16 << 20 // bytes of a rendered file, and of any intermediate text
	// maxWork limits the work of rendering a template once. Each visited part of the template, and
	// each 16 bytes of intermediate text, cost 1.
	maxWork = 4 << 20
)

// An exhausted is the error of a template that exceeded a limit.
type exhausted struct {
	line int // line of the range or definition that exceeded it, or 0 if unknown
	what string
}

func (e *exhausted) Error() string { return e.what }

// count is the name of a function that counts the work of a template. It is inserted into every
// range and definition. No template uses this name by accident.
const count = "orreryCount"

// spend adds work and returns an error if that exceeds the limit.
func (p *parsed) spend(work, line int) error {
	if p.work += work; p.work > maxWork {
		return &exhausted{line, "the template takes too long: it has a range in a range, or calls itself"}
	}
	return nil
}

// counted inserts the counting function into all parts of a template that can run repeatedly.
func counted(t *template.Template) error {
	for _, part := range t.Templates() {
		if part.Tree != nil && part.Root != nil {
			if err := enter(part.Root, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter inserts the counting function into a list, with the length of the list as cost. It does the
// same for the ranges inside the list.
func enter(list *parse.ListNode, line int) error {
	if err := within(list); err != nil {
		return err
	}
	cost := 4 + size(list) // counting itself takes as long as four parts
	trees, err := parse.Parse(count, fmt.Sprintf("{{%s %d %d}}", count, cost, line), "", "", map[string]any{count: true})
	if err != nil {
		return err
	}
	list.Nodes = append([]parse.Node{trees[count].Root.Nodes[0]}, list.Nodes...)
	return nil
}

func within(lists ...*parse.ListNode) error {
	for _, list := range lists {
		if list == nil {
			continue
		}
		for _, node := range list.Nodes {
			var err error
			switch n := node.(type) {
			case *parse.RangeNode:
				if err = enter(n.List, n.Line); err == nil {
					err = within(n.ElseList)
				}
			case *parse.IfNode:
				err = within(n.List, n.ElseList)
			case *parse.WithNode:
				err = within(n.List, n.ElseList)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// size returns the number of parts of a list. It leaves out ranges, which are counted separately.
func size(list *parse.ListNode) int {
	if list == nil {
		return 0
	}
	n := 0
	for _, node := range list.Nodes {
		n++
		switch x := node.(type) {
		case *parse.IfNode:
			n += pipe(x.Pipe) + size(x.List) + size(x.ElseList)
		case *parse.WithNode:
			n += pipe(x.Pipe) + size(x.List) + size(x.ElseList)
		case *parse.RangeNode:
			n += pipe(x.Pipe) + size(x.ElseList)
		case *parse.ActionNode:
			n += pipe(x.Pipe)
		case *parse.TemplateNode:
			n += pipe(x.Pipe)
		}
	}
	return n
}

// pipe returns the number of words in an expression.
func pipe(p *parse.PipeNode) int {
	if p == nil {
		return 0
	}
	n := 0
	for _, command := range p.Cmds {
		for _, arg := range command.Args {
			n++
			if inner, ok := arg.(*parse.PipeNode); ok {
				n += pipe(inner)
			}
		}
	}
	return n
}

// A bounded buffers the output of a template up to maxText bytes.
type bounded struct{ text []byte }

func (b *bounded) Write(more []byte) (int, error) {
	if len(b.text)+len(more) > maxText {
		return 0, tooLong()
	}
	b.text = append(b.text, more...)
	return len(more), nil
}

func tooLong() error {
	return &exhausted{what: fmt.Sprintf("the template writes more than %d MiB of text, intermediate text included",
		maxText>>20)}
}

// countResult counts the length of a text that a function has returned.
func (p *parsed) countResult(text string) (string, error) {
	if len(text) > maxText || p.spend(1+len(text)/16, 0) != nil {
		return "", tooLong()
	}
	return text, nil
}

// length returns an upper bound for the length of the longest value as text.
func (p *parsed) length(args []any) (longest int, err error) {
	all := 0
	for _, arg := range args {
		n := 64
		switch v := arg.(type) {
		case string:
			n = len(v)
		default:
			switch reflect.ValueOf(arg).Kind() {
			case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Pointer, reflect.Interface, reflect.String:
				n = len(fmt.Sprint(arg))
			}
		}
		if p.spend(1+n/16, 0) != nil {
			return 0, tooLong()
		}
		longest, all = max(longest, n), all+n
	}
	if all > maxText {
		err = tooLong()
	}
	return longest, err
}

// plain adds the limits to a function of text/template that prints its arguments.
func (p *parsed) plain(print func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		if _, err := p.length(args); err != nil {
			return "", err
		}
		return p.countResult(print(args...))
	}
}

var (
	verb = pattern.New(`%[^a-zA-Z%]*`)
	wide = pattern.New(`[0-9]{4}|\*`)
)

// printf is fmt.Sprintf with limits for text and widths.
func (p *parsed) printf(format string, args ...any) (string, error) {
	longest, err := p.length(args)
	if err != nil {
		return "", err
	}
	verbs := verb().FindAllString(format, -1)
	for _, v := range verbs {
		if wide().MatchString(v) {
			return "", fmt.Errorf("printf %q: a width above 999 or from an argument is not supported", v)
		}
	}
	const escaped, padded = 6, 2000 // %q writes a letter as \u1234; a width and a precision
	if len(format)+len(verbs)*(padded+escaped*longest) > 8*maxText {
		return "", tooLong()
	}
	return p.countResult(fmt.Sprintf(format, args...))
}

// join is strings.Join for a list of any type, with limits.
func (p *parsed) join(sep string, list any) (string, error) {
	words := texts(list)
	all := 0
	for _, word := range words {
		all += len(word) + len(sep)
	}
	if all > maxText {
		return "", tooLong()
	}
	return p.countResult(strings.Join(words, sep))
}

// quote is strconv.Quote for a value of any type, with limits.
func (p *parsed) quote(x any) (string, error) {
	if _, err := p.length([]any{x}); err != nil {
		return "", err
	}
	return p.countResult(quoted(x))
}
