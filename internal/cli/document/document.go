// Package document compares a configuration file with the type it is meant for,
// in words for people who write YAML.
package document

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/plan/spelling"
)

// Check tells everything that is wrong with the keys of a document and the types
// of their values; into is a pointer to what it is meant for, and is not changed.
// It is false when the document holds no keys at all.
func Check(data []byte, into any) (problems []string, readable bool) {
	var document any
	// Strict, because of a key that is there twice the last would win in silence.
	if err := yaml.UnmarshalStrict(data, &document); err != nil {
		return []string{"it is not YAML: " + strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")), " ")}, false
	}
	keys := map[string]any{}
	if document != nil {
		var ok bool
		if keys, ok = document.(map[string]any); !ok {
			return []string{fmt.Sprintf("it is %s, not keys with values", kindOf(document))}, false
		}
	}
	return checkKeys("", keys, reflect.TypeOf(into).Elem()), true
}

// checkKeys walks a document beside the type it is meant for.
func checkKeys(path string, document map[string]any, shape reflect.Type) (problems []string) {
	fields := map[string]reflect.Type{}
	collect(shape, fields)
	known := make([]string, 0, len(fields))
	for name := range fields {
		known = append(known, path+name)
	}
	slices.Sort(known)
	for key, value := range document {
		field, ok := fields[key]
		if !ok {
			problems = append(problems, spelling.UnknownKey(path+key, known))
			continue
		}
		problems = append(problems, checkValue(path+key, value, field)...)
	}
	slices.Sort(problems)
	return problems
}

// checkValue compares a value with the type its key has. YAML turns what looks
// like a number into one; where a text is wanted it is one again.
func checkValue(path string, value any, shape reflect.Type) []string {
	if shape.Kind() == reflect.Pointer {
		shape = shape.Elem()
	}
	wanted, fits := "", false
	switch shape.Kind() {
	case reflect.Struct:
		keys, ok := value.(map[string]any)
		if ok {
			return checkKeys(path+".", keys, shape)
		}
		wanted = "a map"
	case reflect.Slice:
		items, ok := value.([]any)
		if ok {
			var problems []string
			for i, item := range items {
				problems = append(problems, checkValue(fmt.Sprintf("%s[%d]", path, i), item, shape.Elem())...)
			}
			return problems
		}
		wanted = "a list"
	case reflect.Bool:
		_, fits = value.(bool)
		wanted = "true or false"
	case reflect.Int:
		number, ok := value.(float64)
		fits, wanted = ok && number == math.Trunc(number), "a whole number"
	default:
		switch value.(type) {
		case map[string]any, []any:
		default:
			fits = true
		}
		wanted = "a text"
	}
	if fits || value == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s, not %s", path, kindOf(value), wanted)}
}

// kindOf names the kind of a value for people who write YAML.
func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case bool:
		return "true or false"
	case float64, int64:
		return "a number"
	}
	return "a text"
}

func collect(shape reflect.Type, fields map[string]reflect.Type) {
	for i := range shape.NumField() {
		field := shape.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && options == "inline" {
			collect(field.Type, fields)
		} else {
			fields[name] = field.Type
		}
	}
}
