package jsonlimit

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode"
)

// A shape has the memory costs of decoding a JSON value into a type. The memory of the value itself
// is counted by its container: a slice, a map or a pointer.
type shape struct {
	kind   reflect.Kind      // Invalid if the type has its own decoder
	size   int               // bytes of a value
	elem   *shape            // of a pointer, slice, array or map
	key    int               // bytes of a map key
	fields map[string]*field // of a struct, by folded name
}

// A field is a field of a struct, or of a struct embedded in it.
type field struct {
	*shape
	embedded int // bytes of the embedded structs that are reached through pointers
}

var (
	shapes      sync.Map // reflect.Type to *shape
	shapesMutex sync.Mutex

	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// shapeOf returns the shape of a type. It computes each shape once.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	shapesMutex.Lock()
	defer shapesMutex.Unlock()
	made := map[reflect.Type]*shape{}
	s := makeShape(t, made)
	for t, s := range made {
		shapes.Store(t, s)
	}
	return s
}

// makeShape returns the shape of a type, and adds the shapes of all types that it contains to made.
// A recursive type finds its own shape there.
func makeShape(t reflect.Type, made map[reflect.Type]*shape) *shape {
	if s, ok := made[t]; ok {
		return s
	}
	s := &shape{size: int(t.Size())}
	made[t] = s
	if p := reflect.PointerTo(t); t.Kind() != reflect.Pointer &&
		(p.Implements(unmarshaler) || p.Implements(textUnmarshaler)) {
		return s
	}
	switch s.kind = t.Kind(); s.kind {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		s.elem = makeShape(t.Elem(), made)
	case reflect.Map:
		s.elem, s.key = makeShape(t.Elem(), made), int(t.Key().Size())
	case reflect.Struct:
		s.fields = map[string]*field{}
		addFields(s.fields, t, 0, made)
	}
	return s
}

// addFields adds the fields of a struct and of its embedded structs. Like encoding/json, it prefers
// the field at the shallowest level.
func addFields(to map[string]*field, t reflect.Type, embedded int, made map[reflect.Type]*shape) {
	type level struct {
		t        reflect.Type
		embedded int
	}
	seen := map[reflect.Type]bool{t: true}
	for now := []level{{t, embedded}}; len(now) > 0; {
		var next []level
		here := map[string]*field{}
		for _, l := range now {
			for i := range l.t.NumField() {
				f := l.t.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				inner := f.Type
				if inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				switch {
				case f.Tag.Get("json") == "-", !f.IsExported() && !f.Anonymous:
				case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
					if more := l.embedded; !seen[inner] {
						seen[inner] = true
						if f.Type.Kind() == reflect.Pointer {
							more += int(inner.Size())
						}
						next = append(next, level{inner, more})
					}
				case f.IsExported():
					if name == "" {
						name = f.Name
					}
					key := string(fold(nil, []byte(name)))
					if here[key] != nil {
						// encoding/json would ignore both
						panic(fmt.Sprintf("jsonlimit: %v has two fields %s", t, name))
					}
					here[key] = &field{makeShape(f.Type, made), l.embedded}
				}
			}
		}
		for key, f := range here {
			if to[key] == nil {
				to[key] = f
			}
		}
		now = next
	}
}

// fold appends the folded form of a name, because encoding/json compares names case-insensitively.
func fold(to, name []byte) []byte {
	for _, r := range string(name) {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				r = next
				break
			}
			r = next
		}
		to = append(to, string(r)...)
	}
	return to
}
