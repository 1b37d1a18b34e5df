package strict

import (
	"encoding"
	"reflect"
)

// A JSONSchema is a schema in JSON Schema's draft 2020-12.
type JSONSchema = map[string]any

// Described is a Text that knows the schema of the values that it parses.
type Described interface {
	Schema() JSONSchema
}

// Schema returns the schema of the tables that a Decoder accepts for a pointer to a structure. It is
// made from the same tags, so that it knows exactly the same keys.
func Schema(into any) JSONSchema { return schemaOf(reflect.TypeOf(into).Elem()) }

var (
	textType = reflect.TypeFor[Text]()
	wordType = reflect.TypeFor[encoding.TextUnmarshaler]()
	nodeType = reflect.TypeFor[*Node]()
)

func schemaOf(t reflect.Type) JSONSchema {
	if form := forms[t]; form != nil {
		t = form
	}
	to := reflect.PointerTo(t)
	switch {
	case t == nodeType:
		return JSONSchema{}
	case to.Implements(reflect.TypeFor[named]()):
		value, _ := t.Elem().FieldByName("Value")
		return JSONSchema{"type": "object", "additionalProperties": schemaOf(value.Type)}
	case to.Implements(reflect.TypeFor[Described]()):
		return reflect.New(t).Interface().(Described).Schema()
	case to.Implements(textType):
		return JSONSchema{}
	case to.Implements(wordType):
		return JSONSchema{"type": []string{"string", "number"}}
	}
	switch kind := t.Kind(); {
	case kind == reflect.Pointer:
		return schemaOf(t.Elem())
	case kind == reflect.Struct:
		return tableSchema(t)
	case kind == reflect.Slice:
		return JSONSchema{"type": "array", "items": schemaOf(t.Elem())}
	case kind == reflect.Map:
		return JSONSchema{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case kind == reflect.Bool:
		return JSONSchema{"type": "boolean"}
	case kind == reflect.String:
		return JSONSchema{"type": "string"}
	case reflect.Zero(t).CanUint():
		return JSONSchema{"type": "integer", "minimum": 0}
	case reflect.Zero(t).CanInt():
		return JSONSchema{"type": "integer"}
	case reflect.Zero(t).CanFloat():
		return JSONSchema{"type": "number"}
	}
	return JSONSchema{} // any value
}

// tableSchema returns the schema of a table with fixed keys.
func tableSchema(t reflect.Type) JSONSchema {
	properties := JSONSchema{}
	for key, f := range shapeOf(t).fields {
		of := f.form
		if of == nil {
			of = t.FieldByIndex(f.index).Type
		}
		schema := schemaOf(of)
		if f.preset != nil {
			schema["default"] = f.preset
		}
		properties[key] = schema
	}
	return JSONSchema{"type": "object", "properties": properties, "additionalProperties": false}
}

// Schema returns the schema of sizes.
func (*Size) Schema() JSONSchema {
	return JSONSchema{"anyOf": []JSONSchema{
		{"type": "string", "pattern": `^\s*\+?([0-9]+\.?[0-9]*|\.[0-9]+)\s*(KiB|MiB|GiB|TiB)?\s*$`},
		{"type": "integer", "minimum": 0},
	}}
}

// Schema returns the schema of durations.
func (*duration) Schema() JSONSchema {
	const part = `(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))`
	return JSONSchema{"type": "string", "pattern": `^(\+?` + part + `+|[0-9]{1,5}d` + part + `*)$`}
}

// Schema returns the schema of file modes.
func (*mode) Schema() JSONSchema { return JSONSchema{"type": "string", "pattern": `^0*[0-7]{1,4}$`} }

// Schema returns the schema of subnets.
func (*subnet) Schema() JSONSchema {
	return JSONSchema{"type": "string", "pattern": `^[0-9A-Fa-f:.]+/[0-9]{1,3}$`}
}

// Schema returns the schema of addresses.
func (*Address) Schema() JSONSchema {
	return JSONSchema{"type": "string", "pattern": `^[0-9A-Fa-f:.]+(%.+)?$`}
}
