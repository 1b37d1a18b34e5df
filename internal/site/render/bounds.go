package render

import (
	"fmt"
	"reflect"
	"strings"
	"text/template"
	"text/template/parse"

	"orrery/internal/text/pattern"
)

// A template may be a stranger's, and filling it must end: a range in a range in a range writes
// nothing and takes hours, and a text that is doubled again and again takes all memory.
const (
	maxSource = 1 << 20  // bytes of a template
	maxText   = 16 << 20 // bytes of a file that it makes, and of any text on the way
	// parts of the template that are gone through to fill it once, and sixteenths of the bytes of
	// texts made on the way
	maxWork = 4 << 20
)

// An exhausted template has done as much as it may.
type exhausted struct {
	line int // of the range or definition that came to it; 0: none did
	what string
}

func (e *exhausted) Error() string { return e.what }

// count is the function that counts what a template does, put into every range and definition.
// Nobody would call it so by chance.
const count = "orreryCount"

// spend takes a part of the work that may yet be done.
func (p *parsed) spend(work, line int) error {
	if p.work += work; p.work > maxWork {
		return &exhausted{line, "the template does not come to an end: it is a range in a range, or calls itself"}
	}
	return nil
}

// counted puts the counting into all parts of a template that can be gone through more than once.
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

// enter counts a list that is gone into, by its length, and puts the counting into the ranges in it.
func enter(list *parse.ListNode, line int) error {
	if err := within(list); err != nil {
		return err
	}
	cost := 4 + size(list) // to count takes as long as four parts
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

// size is of how many parts a list is, less those in ranges, which count for themselves.
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

// pipe is how many words an expression has.
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

// A bounded keeps what a template writes, up to a bound.
type bounded struct{ text []byte }

func (b *bounded) Write(more []byte) (int, error) {
	if len(b.text)+len(more) > maxText {
		return 0, tooLong()
	}
	b.text = append(b.text, more...)
	return len(more), nil
}

func tooLong() error {
	return &exhausted{what: fmt.Sprintf("the template makes more than %d MiB of text, or more than it may on the way",
		maxText>>20)}
}

// made accounts for a text that a function has made.
func (p *parsed) made(text string) (string, error) {
	if len(text) > maxText || p.spend(1+len(text)/16, 0) != nil {
		return "", tooLong()
	}
	return text, nil
}

// length is how long the longest of some values is as text, at most.
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

// plain makes a function of text/template that prints its arguments one that has a bound.
func (p *parsed) plain(print func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		if _, err := p.length(args); err != nil {
			return "", err
		}
		return p.made(print(args...))
	}
}

var (
	verb = pattern.New(`%[^a-zA-Z%]*`)
	wide = pattern.New(`[0-9]{4}|\*`)
)

// printf is fmt.Sprintf for texts and widths that have a bound.
func (p *parsed) printf(format string, args ...any) (string, error) {
	longest, err := p.length(args)
	if err != nil {
		return "", err
	}
	verbs := verb().FindAllString(format, -1)
	for _, v := range verbs {
		if wide().MatchString(v) {
			return "", fmt.Errorf("printf %q: a width of more than 999, or one that is an argument, is not known here", v)
		}
	}
	const escaped, padded = 6, 2000 // %q writes a letter as \u1234; a width and a precision
	if len(format)+len(verbs)*(padded+escaped*longest) > 8*maxText {
		return "", tooLong()
	}
	return p.made(fmt.Sprintf(format, args...))
}

// join is strings.Join of whatever a list is of.
func (p *parsed) join(sep string, list any) (string, error) {
	words := texts(list)
	all := 0
	for _, word := range words {
		all += len(word) + len(sep)
	}
	if all > maxText {
		return "", tooLong()
	}
	return p.made(strings.Join(words, sep))
}

// quote is strconv.Quote of whatever it is given.
func (p *parsed) quote(x any) (string, error) {
	if _, err := p.length([]any{x}); err != nil {
		return "", err
	}
	return p.made(quoted(x))
}
