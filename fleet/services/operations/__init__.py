"""Operations: the product's own processes, exclusive tasks, lease requests, keys and authorities."""
