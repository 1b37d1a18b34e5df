package strict

import (
	"reflect"

	"orrery/internal/problem"
)

// Tables are tables with names chosen by the user, such as [node.portal], in the order of the file.
type Tables[T any] []Named[T]

// A Named is one table of Tables.
type Named[T any] struct {
	Name  string
	At    *Node
	Value T
}

// Values returns the tables. Structures have their names set.
func (t Tables[T]) Values() []T {
	var all []T
	for _, one := range t {
		all = append(all, one.Value)
	}
	return all
}

// add adds a table with a name and returns a pointer to its value, for decoding.
func (t *Tables[T]) add(name string, at *Node) any {
	*t = append(*t, Named[T]{Name: name, At: at})
	return &(*t)[len(*t)-1].Value
}

// named is a pointer to Tables.
type named interface {
	add(name string, at *Node) any
}

func (d *Decoder) tables(name string, at *Node, to named) {
	if _, ok := at.Value.(map[string]any); !ok {
		d.mismatch(name, "a table", at)
		return
	}
	for _, key := range at.Order {
		node := at.Keys[key]
		if d.MaxNameLen > 0 && len(key) > d.MaxNameLen {
			d.Report(node, problem.New(problem.Mistake, "the name %s has more than %d characters", Describe(key),
				d.MaxNameLen).Try("choose a shorter one"))
			continue
		}
		into := reflect.ValueOf(to.add(key, node)).Elem()
		d.decode(name+"."+key, node, into)
		if into.Kind() == reflect.Struct && shapeOf(into.Type()).name != nil {
			into.FieldByIndex(shapeOf(into.Type()).name).SetString(key)
		}
	}
}
