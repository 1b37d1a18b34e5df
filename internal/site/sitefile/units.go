package sitefile

import (
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/strict"
)

type (
	batch   site.Batch
	publish site.Publish
	// port is the port of a health check: a number, or a parameter in braces.
	port struct {
		number int
		param  string
	}
)

func mistake(format string, args ...any) *problem.Problem {
	return problem.New(problem.Mistake, format, args...)
}

func (b *batch) Parse(value any) *problem.Problem {
	var parsed site.Batch
	ok := false
	switch v := value.(type) {
	case int64:
		parsed, ok = site.ParseBatch(strconv.FormatInt(v, 10))
	case string:
		if parsed, ok = site.ParseBatch(v); parsed.Nodes > 0 {
			return mistake("a number of nodes must be a whole number, not %s", strict.Describe(value)).
				Try("write it without quotation marks: %s", v)
		}
	}
	if !ok {
		return mistake("%s is not a number or percentage of nodes", strict.Describe(value)).
			Try(`write 1 or more, or "1%%" to "100%%"`)
	}
	*b = batch(parsed)
	return nil
}

// publishForm is the syntax of an entry, for messages.
const publishForm = "[ADDRESS:]HOSTPORT:NODEPORT[/tcp|udp]"

// maxPublish is how many entries a node may publish.
const maxPublish = 100

func (p *publish) Parse(value any) *problem.Problem {
	text, ok := value.(string)
	if !ok {
		return mistake("%s does not say to which port of the node it leads", strict.Describe(value)).
			Try(`write "8080:80"; the form is %s`, publishForm)
	}
	parsed, err := site.ParsePublish(text)
	if err != nil {
		return mistake("%s: %s", strict.Describe(value), problem.Truncate(err.Error(), 200)).
			Try(`such as "8080:80"; the form is %s`, publishForm)
	}
	*p = publish(parsed)
	return nil
}

// Schema returns the schema of published ports.
func (p *publish) Schema() strict.JSONSchema {
	return strict.JSONSchema{"type": "string", "pattern": `^\S+:[0-9-]+(/[a-z]+)?$`}
}

// Schema returns the schema of batches.
func (b *batch) Schema() strict.JSONSchema {
	return strict.JSONSchema{"anyOf": []strict.JSONSchema{
		{"type": "integer", "minimum": 1}, {"type": "string", "pattern": `^[0-9]+%$`},
	}}
}

func (p *port) Parse(value any) *problem.Problem {
	switch v := value.(type) {
	case int64:
		p.number = int(v) // package check reports numbers that are no ports
	case string:
		p.param = v
		if !strings.HasPrefix(v, "{{") || !strings.HasSuffix(v, "}}") {
			return mistake("%s is not a port", strict.Describe(value)).Try(`write a number, or "{{.Param.NAME}}"`)
		}
	default:
		return mistake("%s is not a port", strict.Describe(value)).Try(`write a number, or "{{.Param.NAME}}"`)
	}
	return nil
}

// Schema returns the schema of ports of health checks.
func (p *port) Schema() strict.JSONSchema {
	return strict.JSONSchema{"anyOf": []strict.JSONSchema{
		{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "string", "pattern": `^\{\{ *\.Param\.[a-z0-9_]+ *\}\}$`},
	}}
}
