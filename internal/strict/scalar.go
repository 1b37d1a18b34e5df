package strict

import (
	"fmt"
	"reflect"
	"strconv"

	"orrery/internal/problem"
)

func (d *Decoder) scalar(name string, at *Node, into reflect.Value) {
	given := reflect.ValueOf(at.Value)
	switch kind := into.Kind(); {
	case kind == reflect.String && given.Kind() == reflect.String && d.MaxStringLen > 0 && given.Len() > d.MaxStringLen:
		d.Report(at, problem.New(problem.Mistake, "%s has more than %d characters", name,
			d.MaxStringLen).Try("put it into a file of a role"))
	case kind == reflect.String && given.Kind() == reflect.String:
		into.SetString(given.String())
	case kind == reflect.Bool && given.Kind() == reflect.Bool:
		into.SetBool(given.Bool())
	case into.CanInt() && given.Kind() == reflect.Int64:
		if into.OverflowInt(given.Int()) {
			d.Report(at, problem.New(problem.Mistake, "%s = %d is too large", name, given.Int()))
			return
		}
		into.SetInt(given.Int())
	case into.CanUint() && given.Kind() == reflect.Int64:
		if given.Int() < 0 || into.OverflowUint(uint64(given.Int())) {
			d.Report(at, problem.New(problem.Mistake, "%s = %d is out of range", name, given.Int()))
			return
		}
		into.SetUint(uint64(given.Int()))
	case into.CanFloat() && given.Kind() == reflect.Int64:
		into.SetFloat(float64(given.Int()))
	case into.CanFloat() && given.Kind() == reflect.Float64:
		into.SetFloat(given.Float())
	default:
		d.mismatch(name, kindName(into), at)
	}
}

func kindName(into reflect.Value) string {
	switch {
	case into.CanInt(), into.CanUint():
		return "a whole number"
	case into.CanFloat():
		return "a number"
	case into.Kind() == reflect.Bool:
		return "true or false"
	}
	return "a string"
}

func (d *Decoder) mismatch(name, want string, at *Node) {
	p := problem.New(problem.Mistake, "%s must be %s, not %s", name, want, Describe(at.Value))
	switch s, isString := at.Value.(string); {
	case want == "a string":
		switch at.Value.(type) {
		case int64, float64, bool:
			p.Try("put it in quotation marks: \"%v\"", at.Value)
		}
	case want == "a list":
		if isString {
			p.Try("write %s = [%q]", name, s)
		} else if n, isNumber := at.Value.(int64); isNumber {
			p.Try("write %s = [%d]", name, n)
		}
	case isString && plain(s, want):
		p.Try("write it without quotation marks: %s", s)
	}
	d.Report(at, p)
}

// Describe returns a value of a TOML file in a form for messages.
func Describe(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(problem.Truncate(v, 60))
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	case nil:
		return "nothing"
	}
	return fmt.Sprint(value)
}

// plain reports whether text would be a valid value without its quotation marks.
func plain(text, want string) bool {
	switch want {
	case "true or false":
		return text == "true" || text == "false"
	case "a whole number":
		_, err := strconv.Atoi(text)
		return err == nil
	case "a number":
		_, err := strconv.ParseFloat(text, 64)
		return err == nil
	}
	return false
}
