package strict

import (
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A shape describes a structure type for decoding.
type shape struct {
	fields map[string]field // by key
	preset []field          // fields with a default
	within [][]int          // indexes of nested structures, which may have defaults
	at     []int            // index of the field At of type *Node, or nil
	line   []int            // index of the field Line, or nil
	name   []int            // index of the field Name for its name in Tables, or nil
}

// A field is a field with a key.
type field struct {
	index []int
	// form is the type that parses the value: a Text with the same structure. It is nil if values
	// of the field's own type are decoded directly.
	form   reflect.Type
	preset any // default value if the key is not in the file
}

// forms are the parsing types for types that have no Parse method.
var forms = map[reflect.Type]reflect.Type{
	reflect.TypeFor[time.Duration](): reflect.TypeFor[duration](),
	reflect.TypeFor[netip.Prefix]():  reflect.TypeFor[subnet](),
	reflect.TypeFor[netip.Addr]():    reflect.TypeFor[Address](),
}

// units are the parsing types for numbers and strings, by the field's tag unit:"…".
var units = map[string]reflect.Type{
	"size": reflect.TypeFor[Size](), "mode": reflect.TypeFor[mode](), "list": reflect.TypeFor[wordList](),
}

// shapes has the shapes that were computed, by reflect.Type: a site has a decoder for each of its files.
var shapes sync.Map

// shapeOf returns the shape of a type, including the fields of embedded structures. It computes each shape once.
func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	s := &shape{fields: map[string]field{}}
	s.add(t, nil)
	shapes.Store(t, s)
	return s
}

// add adds the fields of a structure at an index. All keys are unique, so it does not need
// reflect.VisibleFields. That function took a sixth of the time for reading a small site file.
func (s *shape) add(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		f.Index = append(slices.Clip(at), i)
		key, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		switch {
		case key != "" && key != "-":
			entry := field{index: f.Index, form: units[f.Tag.Get("unit")]}
			if text, ok := f.Tag.Lookup("default"); ok {
				entry.preset = parseDefault(f, text)
				s.preset = append(s.preset, entry)
			}
			if f.Type.Kind() == reflect.Struct && forms[f.Type] == nil {
				s.within = append(s.within, f.Index)
			}
			s.fields[key] = entry
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			s.add(f.Type, f.Index)
		case f.Name == "At" && f.Type == reflect.TypeFor[*Node]():
			s.at = shallower(s.at, f.Index)
		case f.Name == "Line" && f.Type.Kind() == reflect.Int:
			s.line = shallower(s.line, f.Index)
		case f.Name == "Name" && f.Type.Kind() == reflect.String:
			s.name = shallower(s.name, f.Index)
		}
	}
}

// shallower returns the index of the field that is embedded less deeply. A nil index means no field.
func shallower(a, b []int) []int {
	if a != nil && len(a) <= len(b) {
		return a
	}
	return b
}

// parseDefault returns a default as go-toml would return it from a file.
func parseDefault(f reflect.StructField, text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && f.Tag.Get("unit") != "mode" {
		return n
	}
	if value, err := strconv.ParseBool(text); err == nil && f.Type.Kind() == reflect.Bool {
		return value
	}
	return text
}

// setDefaults sets the defaults of a structure and the position of its table.
func (d *Decoder) setDefaults(s reflect.Value, at *Node) {
	shape := shapeOf(s.Type())
	if shape.at != nil {
		s.FieldByIndex(shape.at).Set(reflect.ValueOf(at))
	}
	if shape.line != nil {
		s.FieldByIndex(shape.line).SetInt(int64(at.Line))
	}
	for _, f := range shape.preset {
		d.decode("", &Node{Value: f.preset}, f.valueIn(s))
	}
	for _, index := range shape.within {
		d.setDefaults(s.FieldByIndex(index), at)
	}
}

// valueIn returns the field of a structure, converted to its form.
func (f field) valueIn(s reflect.Value) reflect.Value {
	value := s.FieldByIndex(f.index)
	if f.form == nil {
		return value
	}
	if value.Kind() == reflect.Pointer {
		value.Set(reflect.New(value.Type().Elem()))
		value = value.Elem()
	}
	return convert(value, f.form)
}

func convert(value reflect.Value, form reflect.Type) reflect.Value {
	return value.Addr().Convert(reflect.PointerTo(form)).Elem()
}
