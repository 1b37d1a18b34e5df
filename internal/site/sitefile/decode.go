package sitefile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"orrery/internal/problem"
)

// tables are named tables, such as [node.portal], in the order in which they are written.
type tables[T any] []table[T]

type table[T any] struct {
	name  string
	at    *place
	value T
}

// add gives where the table of that name is to be decoded into.
func (t *tables[T]) add(name string, at *place) any {
	*t = append(*t, table[T]{name: name, at: at})
	return &(*t)[len(*t)-1].value
}

// A named is a pointer to tables.
type named interface {
	add(name string, at *place) any
}

// A text is a value with a form of its own, such as "512MiB". What parse says is wrong needs no place.
type text interface {
	parse(value any) *problem.Problem
}

// A decoder puts what go-toml read into the types of this package. go-toml could do so itself, but it stops at
// the first value of a wrong type, and every mistake is to be told at once.
type decoder struct {
	wrong func(at *place, p *problem.Problem)
	// misspelt tells that an unknown key was probably meant as this one.
	misspelt func(table *place, key string)
	longest  int                               // string, in bytes
	enough   func() bool                       // so many mistakes have been told that no more are sought
	fields   map[reflect.Type]map[string][]int // see fieldsOf
}

// decode puts a value, which stands at a place and is called name there, into a variable.
func (d *decoder) decode(name string, value any, at *place, into reflect.Value) {
	if d.enough() {
		return
	}
	switch to := into.Addr().Interface().(type) {
	case named:
		d.tables(name, value, at, to)
		return
	case text:
		if p := to.parse(value); p != nil {
			p.What = name + ": " + p.What
			d.wrong(at, p)
		}
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.decode(name, value, at, into.Elem())
	case reflect.Struct:
		d.table(name, value, at, into)
	case reflect.Slice:
		d.list(name, value, at, into)
	case reflect.Map:
		d.free(name, value, at, into)
	default:
		d.scalar(name, value, at, into)
	}
}

func (d *decoder) tables(name string, value any, at *place, to named) {
	all, ok := value.(map[string]any)
	if !ok {
		d.mismatch(name, "a table", value, at)
		return
	}
	for _, key := range at.order {
		there := at.keys[key]
		if len(key) > maxName {
			d.wrong(there, problem.New(problem.Mistake, "the name %s has more than %d characters", say(key), maxName).Try("choose a shorter one"))
			continue
		}
		d.decode(name+"."+key, all[key], there, reflect.ValueOf(to.add(key, there)).Elem())
	}
}

func (d *decoder) table(name string, value any, at *place, into reflect.Value) {
	if field := into.FieldByName("At"); field.IsValid() {
		field.Set(reflect.ValueOf(at))
	}
	keys, ok := value.(map[string]any)
	if !ok {
		d.mismatch(name, "a table", value, at)
		return
	}
	fields := d.fieldsOf(into.Type())
	for _, key := range at.order {
		if index, ok := fields[key]; ok {
			d.decode(key, keys[key], at.keys[key], into.FieldByIndex(index))
			continue
		}
		d.unknown(name, key, at, fields)
	}
}

// fieldsOf gives the fields of a structure, and of those embedded in it, by key.
func (d *decoder) fieldsOf(t reflect.Type) map[string][]int {
	if fields, ok := d.fields[t]; ok {
		return fields
	}
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if tag := f.Tag.Get("toml"); tag != "" && tag != "-" {
			fields[tag] = f.Index
		}
	}
	if d.fields == nil {
		d.fields = map[reflect.Type]map[string][]int{}
	}
	d.fields[t] = fields
	return fields
}

func (d *decoder) unknown(table, key string, at *place, fields map[string][]int) {
	if d.enough() {
		return
	}
	known := make([]string, 0, len(fields))
	for k := range fields {
		known = append(known, k)
	}
	slices.Sort(known)
	what := fmt.Sprintf("unknown key %q", key)
	if table != "" {
		what += " in " + table
	}
	p := problem.New(problem.Mistake, "%s", what)
	if nearest := problem.Nearest(key, known); nearest != "" {
		d.misspelt(at, nearest)
		p.Try("%q is the nearest", nearest)
	} else {
		p.Try("known: %s", strings.Join(known, ", "))
	}
	d.wrong(at.keys[key], p)
}

func (d *decoder) list(name string, value any, at *place, into reflect.Value) {
	items, ok := value.([]any)
	if !ok {
		d.mismatch(name, "a list", value, at)
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	itemName, isTable := name, into.Type().Elem().Kind() == reflect.Struct
	for i, item := range items {
		if !isTable {
			itemName = fmt.Sprintf("%s[%d]", name, i)
		}
		there := at
		if i < len(at.items) {
			there = at.items[i]
		}
		d.decode(itemName, item, there, into.Index(i))
	}
}

// free decodes a table whose keys are the user's.
func (d *decoder) free(name string, value any, at *place, into reflect.Value) {
	all, ok := value.(map[string]any)
	if !ok {
		d.mismatch(name, "a table", value, at)
		return
	}
	if into.Type().Elem().Kind() == reflect.Interface {
		into.Set(reflect.ValueOf(all))
		return
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(all)))
	for _, key := range at.order {
		element := reflect.New(into.Type().Elem()).Elem()
		d.decode(key, all[key], at.keys[key], element)
		into.SetMapIndex(reflect.ValueOf(key), element)
	}
}
