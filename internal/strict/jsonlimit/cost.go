package jsonlimit

import (
	"encoding/json"
	"math"
	"reflect"
)

// Memory that values cost in addition to their own size, in bytes: an allocation, an empty map, and
// the slots that a map starts with. Slices and maps grow by copying, and the old copies wait for
// the garbage collector.
const (
	alloc    = 16
	emptyMap = 64
	slots    = 8
	grown    = 2

	iface = 16 // bytes of an interface value
)

// maxDepth is the maximum depth of nested values. Messages have less than 20 levels.
const maxDepth = 200

// costOf returns an upper bound for the bytes that decoding text into a value of a shape allocates.
// It stops when the cost exceeds the budget. If the text is not JSON, the result is arbitrary,
// because decoding fails.
func costOf(text []byte, s *shape, budget int) int {
	c := counter{text: text, budget: budget}
	c.value(s, 0)
	return c.cost
}

// A counter scans a text. At the end, and on invalid JSON, it moves to the end.
type counter struct {
	text   []byte
	at     int
	cost   int
	budget int
	name   []byte // buffer for a name
}

func (c *counter) spend(bytes int) {
	if c.cost += bytes; c.cost > c.budget {
		c.at = len(c.text)
	}
}

// peek returns the first byte of the next token, or 0 at the end.
func (c *counter) peek() byte {
	for ; c.at < len(c.text); c.at++ {
		switch b := c.text[c.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// next consumes the next token if it is the byte want. It reports whether it did.
func (c *counter) next(want byte) bool {
	if c.peek() != want {
		return false
	}
	c.at++
	return true
}

// literal consumes a string, a number or a word. It returns a string with its quotes.
func (c *counter) literal() []byte {
	begin := c.at
	if c.peek() != '"' {
		for c.at < len(c.text) {
			switch c.text[c.at] {
			case ',', ':', ']', '}', '"', '[', '{', ' ', '\t', '\r', '\n':
				if c.at == begin {
					c.at = len(c.text) // no value begins with this byte
				}
				return c.text[begin:min(c.at, len(c.text))]
			}
			c.at++
		}
		return c.text[begin:]
	}
	begin = c.at
	for c.at++; c.at < len(c.text); c.at++ {
		switch c.text[c.at] {
		case '\\':
			c.at++
		case '"':
			c.at++
			return c.text[begin:c.at]
		}
	}
	c.at = len(c.text)
	return nil
}

// value adds the cost of a value that is decoded into shape s, or ignored if s is nil.
func (c *counter) value(s *shape, depth int) {
	if depth > maxDepth {
		c.spend(math.MaxInt32)
		return
	}
	switch first := c.peek(); {
	case s == nil:
		c.skip(first, depth)
	case s.kind == reflect.Pointer && first != 'n':
		c.spend(s.elem.size + alloc)
		c.value(s.elem, depth+1)
	case s.kind == reflect.Invalid:
		begin := c.at
		c.skip(first, depth)
		c.spend(3*(c.at-begin) + alloc)
	case first == '"':
		n := len(c.literal())
		c.spend(3*n + alloc) // an invalid UTF-8 byte becomes three bytes
	case first == '{':
		c.object(s, depth)
	case first == '[':
		c.array(s, depth)
	default:
		c.literal()
		if s.kind == reflect.Interface {
			c.spend(alloc) // a number
		}
	}
}

// skip consumes a value that is not stored.
func (c *counter) skip(first byte, depth int) {
	switch first {
	case '{':
		c.object(&shape{kind: reflect.Struct}, depth)
	case '[':
		c.array(&shape{kind: reflect.Array}, depth)
	default:
		c.literal()
	}
}

func (c *counter) array(s *shape, depth int) {
	var elem *shape
	each := 0
	switch s.kind {
	case reflect.Slice:
		elem, each = s.elem, grown*s.elem.size
	case reflect.Array:
		elem = s.elem
	case reflect.Interface:
		elem, each = s, grown*iface
	}
	c.at++
	for first := true; c.at < len(c.text) && !c.next(']'); first = false {
		if !first && !c.next(',') {
			c.at = len(c.text)
			return
		}
		if first {
			c.spend(alloc)
		}
		c.spend(each)
		c.value(elem, depth+1)
	}
}

func (c *counter) object(s *shape, depth int) {
	entry := 0 // bytes of a map entry
	switch s.kind {
	case reflect.Map:
		entry = s.key + s.elem.size + 1
		c.spend(emptyMap)
	case reflect.Interface:
		entry = 2*iface + 1
		c.spend(emptyMap)
	}
	c.at++
	for first := true; c.at < len(c.text) && !c.next('}'); first = false {
		if !first && !c.next(',') || c.peek() != '"' {
			c.at = len(c.text)
			return
		}
		name := c.literal()
		if !c.next(':') {
			c.at = len(c.text)
			return
		}
		var elem *shape
		switch s.kind {
		case reflect.Map:
			elem = s.elem
		case reflect.Interface:
			elem = s
		case reflect.Struct:
			if f := c.field(s, name); f != nil {
				elem = f.shape
				c.spend(f.embedded)
			}
		}
		if entry > 0 {
			if first {
				c.spend((slots - 1) * entry)
			}
			c.spend(2*grown*entry + 3*len(name) + alloc)
		}
		c.value(elem, depth+1)
	}
}

// field returns the field into which a quoted name is decoded, or nil.
func (c *counter) field(s *shape, quoted []byte) *field {
	if len(s.fields) == 0 || len(quoted) < 2 {
		return nil
	}
	name := quoted[1 : len(quoted)-1]
	for _, b := range name {
		if b == '\\' || b >= 0x80 {
			var text string
			if json.Unmarshal(quoted, &text) != nil {
				return nil
			}
			c.name = fold(c.name[:0], []byte(text))
			return s.fields[string(c.name)]
		}
	}
	c.name = c.name[:0]
	for _, b := range name {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		c.name = append(c.name, b)
	}
	return s.fields[string(c.name)]
}
