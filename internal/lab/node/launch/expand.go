package launch

import "strings"

// expand replaces $(NAME) by the value of NAME. As in the Pod API, a reference
// to an unknown name stays as it is, and $$ stands for one $, so that $$(NAME)
// comes out as the text $(NAME).
func expand(s string, value func(name string) (string, bool)) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:i])
		token, rest := cutToken(s[i:])
		out.WriteString(resolve(token, value))
		s = rest
	}
}

// cutToken splits s, which begins with a dollar sign and something after it,
// behind its first token: $$, $(NAME), or the lone $.
func cutToken(s string) (token, rest string) {
	switch s[1] {
	case '$':
		return s[:2], s[2:]
	case '(':
		if end := strings.IndexByte(s, ')'); end > 0 {
			return s[:end+1], s[end+1:]
		}
	}
	return s[:1], s[1:]
}

func resolve(token string, value func(string) (string, bool)) string {
	if token == "$$" {
		return "$"
	}
	if name, ok := strings.CutPrefix(token, "$("); ok {
		if v, known := value(strings.TrimSuffix(name, ")")); known {
			return v
		}
	}
	return token
}
