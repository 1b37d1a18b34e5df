package site

import "orrery/internal/problem"

// rolePaths are directories, or addresses of git repositories. The site file has a list of them, or one.
type rolePaths []string

// Parse parses a text or a list of texts.
func (r *rolePaths) Parse(value any) *problem.Problem {
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			return problem.New(problem.Mistake, "directories of roles must be strings").Try(`write ["../roles"]`)
		}
		*r = append(*r, text)
	}
	return nil
}

// Schema returns the JSON Schema of the values.
func (*rolePaths) Schema() map[string]any {
	text := map[string]any{"type": "string"}
	return map[string]any{"anyOf": []any{text, map[string]any{"type": "array", "items": text}}}
}
